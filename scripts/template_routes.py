"""Writes the API's routes into template.yaml from functions/endpoints.py, which is the one list of them.

python scripts/template_routes.py            write
python scripts/template_routes.py --check    say whether anything would change
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from functions.endpoints import ENDPOINTS, FALLBACK  # noqa: E402 - after the path is set

TEMPLATE = ROOT / "template.yaml"
BLOCK = re.compile(r"(  # \[routes\n).*?(  # routes\]\n)", re.DOTALL)


def resource(name: str, key: str, function: str) -> str:
    """One route of the API."""
    return (
        f"  {name}Route:\n"
        "    Type: AWS::ApiGatewayV2::Route\n"
        "    Properties:\n"
        "      ApiId: !Ref Api\n"
        f'      RouteKey: "{key}"\n'
        f'      Target: !Sub "integrations/${{{function.capitalize()}Integration}}"\n'
    )


def routes() -> str:
    """Every endpoint that is there, and the default for whatever matches none."""
    rows = [
        resource(
            "".join(part.capitalize() for part in name.split("_")),
            f"{each.method} {each.path}",
            each.function,
        )
        for name, each in ENDPOINTS.items()
        if each.function
    ]
    return "".join([*rows, resource("Default", "$default", FALLBACK)])


def written(template: str) -> str:
    """The template with the routes as they should be."""
    out, count = BLOCK.subn(lambda found: found.group(1) + routes() + found.group(2), template)
    if count != 1:
        sys.exit("noema: template.yaml has lost its marks '# [routes' and '# routes]'")
    return out


if __name__ == "__main__":
    before = TEMPLATE.read_text("utf-8")
    after = written(before)
    if "--check" in sys.argv[1:]:
        if before != after:
            sys.exit("noema: template.yaml's routes are not those of functions/endpoints.py: run scripts/fix")
    else:
        TEMPLATE.write_text(after, "utf-8")
