"""What texts mean: the trees of the places where the grammar leaves a reader in doubt."""

from __future__ import annotations

import pytest

from core.errors import NoemaError
from core.language import ast, ast_kml, ast_kql, ast_meta, is_mutation, language_of, parse


def _where(text: str) -> ast.Where:
    found = parse(f"FIND(?x) WHERE {{ {text} }}")
    assert isinstance(found, ast_kql.Find)
    return found.where


def _condition(text: str) -> ast.Expression:
    (clause,) = _where(f"FILTER({text})")
    assert isinstance(clause, ast.Filter)
    return clause.condition


def var(name: str) -> ast.Variable:
    return ast.Variable(name=name)


def lit(value: str | float | bool | None) -> ast.Literal:
    return ast.Literal(value=value)


def test_a_literal_is_equal_only_to_one_of_its_own_json_type() -> None:
    """True, 1 and 1.0 are three literals, and so are "5" and 5."""
    assert len({lit(True), lit(1), lit(1.0), lit("5"), lit(5), lit(None), lit(False), lit(0)}) == 8


def test_spans_tell_places_and_never_decide_equality() -> None:
    """A node knows the line and column it begins at; two nodes of different places are equal."""
    first = parse("FIND(?x)\nWHERE {\n  ?x {a: 1}\n}")
    assert isinstance(first, ast_kql.Find)
    (pattern,) = first.where

    assert (pattern.span.line, pattern.span.column, pattern.span.offset) == (3, 3, 19)
    assert first == parse("FIND(?x) WHERE { ?x {a: 1} }")
    assert hash(first) == hash(parse("FIND(?x) WHERE { ?x {a: 1} }"))


def test_and_binds_tighter_than_or_and_comparison_tighter_than_both() -> None:
    """`a || b && c == d` is a or (b and (c equals d))."""
    expected = ast.Or(
        operands=(
            var("a"),
            ast.And(operands=(var("b"), ast.Comparison(operator="==", left=var("c"), right=var("d")))),
        )
    )

    assert _condition("?a || ?b && ?c == ?d") == expected
    assert _condition("?a || (?b && (?c == ?d))") == expected


def test_a_minus_before_a_number_is_part_of_the_number() -> None:
    """`-5`, `- 5` and `-(5)` are the literal minus five; `-?x` is an operation."""
    assert _condition("-5") == _condition("- 5") == _condition("-(5)") == lit(-5)
    assert _condition("-?x") == ast.Minus(operand=var("x"))
    assert _condition("?a < -1") == ast.Comparison(operator="<", left=var("a"), right=lit(-1))


def test_a_whole_number_with_a_point_stays_a_float() -> None:
    """1 and 1.0 and 1e0 are read as written; whether they are equal is the engine's to say."""
    assert type(_condition("1").value) is int  # type: ignore[union-attr]
    assert type(_condition("1.0").value) is float  # type: ignore[union-attr]
    assert type(_condition("1e0").value) is float  # type: ignore[union-attr]


def test_both_spellings_of_a_step_are_one_step() -> None:
    """`?x.a` and `?x["a"]` are the same path; a bare variable is no path."""
    assert _condition('?x.facets["F"].a') == ast.FieldAccess(variable="x", path=("facets", "F", "a"))
    assert _condition('?x["facets"].F["a"]') == ast.FieldAccess(variable="x", path=("facets", "F", "a"))
    assert _condition("?x") == var("x")


def test_a_name_before_a_colon_may_touch_its_value() -> None:
    """`{strict:true}` is a member and not the parameter `:true`; `{a::p}` is a member bound to `:p`."""
    assert _where("?x {a:true,b::p,c:?v}") == _where("?x {a: true, b: :p, c: ?v}")
    assert _where("?p (id:true)") == _where("?p (id: true)")
    assert parse("VALIDATE KML :c WITH {strict:true}") == parse("VALIDATE KML :c WITH { strict: true }")


def test_keywords_are_words_where_no_keyword_may_stand() -> None:
    """Any keyword is a field name, a step of a path and the name of a variable or parameter."""
    (pattern,) = _where("?find {where: :limit}")

    assert pattern == ast.ElementPattern(
        kind="concept",
        variable="find",
        match=ast.ObjectPattern(
            members=(ast.PatternMember(name="where", value=ast.Parameter(name="limit")),)
        ),
    )
    assert _condition("?x.filter.where") == ast.FieldAccess(variable="x", path=("filter", "where"))


def test_a_path_walked_once_is_a_plain_predicate() -> None:
    """`"p"{1}` and `"p"{1,1}` are `"p"`; anything else is a path."""
    assert _where('(?a, "p"{1}, ?b)') == _where('(?a, "p"{1,1}, ?b)') == _where('(?a, "p", ?b)')
    (pattern,) = _where('(?a, "p"{2,} | :q, ?b)')
    assert isinstance(pattern, ast.PropositionPattern)
    assert isinstance(pattern.tuple, ast.Triple)
    assert pattern.tuple.predicate == ast.PredicatePath(
        alternatives=(
            ast.PathAtom(predicate=lit("p"), minimum=2, maximum=None),
            ast.PathAtom(predicate=ast.Parameter(name="q")),
        )
    )


def test_an_object_of_value_and_language_is_a_typed_literal() -> None:
    """In a tuple `{value: ..., language: ...}` is a literal (KIP §9); any other object is a match."""
    (typed, match, alone) = _where(
        '(?a, "p", {value: "oui", language: "fr"}) (?a, "p", {value: "oui", name: "x"}) (?a, "p", {value: "oui"})'
    )

    assert typed.tuple.object == ast.Literal(value="oui", language="fr")  # type: ignore[union-attr]
    assert isinstance(match.tuple.object, ast.ObjectPattern)  # type: ignore[union-attr]
    assert isinstance(alone.tuple.object, ast.ObjectPattern)  # type: ignore[union-attr]


def test_a_datatype_makes_a_typed_literal_only_of_strings() -> None:
    """A datatype or language that is no string leaves the object a match."""
    (typed, match) = _where(
        '(?a, "p", {value: "1", datatype: "xsd:int"}) (?a, "p", {value: "1", datatype: 5})'
    )

    assert typed.tuple.object == ast.Literal(value="1", datatype="xsd:int")  # type: ignore[union-attr]
    assert isinstance(match.tuple.object, ast.ObjectPattern)  # type: ignore[union-attr]


def test_the_member_of_an_object_is_found_by_its_name() -> None:
    """Objects and match objects answer for a member, and None for one they lack."""
    retention = parse('SET RETENTION :x {a: 1, "b c": 2}')
    (pattern,) = _where("?x {a: 1}")

    assert isinstance(retention, ast_kml.SetRetention)
    assert isinstance(pattern, ast.ElementPattern)
    assert (retention.values.get("b c"), retention.values.get("z")) == (lit(2), None)
    assert (pattern.match.get("a"), pattern.match.get("z")) == (lit(1), None)


def test_the_short_and_the_long_form_of_a_pattern_are_one_pattern() -> None:
    """`CONCEPT` and `PROPOSITION` may be left out."""
    assert _where("?x CONCEPT {a: 1}") == _where("?x {a: 1}")
    assert _where('?p PROPOSITION (?a, "p", ?b)') == _where('?p (?a, "p", ?b)')
    assert _where('PROPOSITION (?a, "p", ?b)') == _where('(?a, "p", ?b)')


def test_belief_takes_a_variable_an_id_or_a_triple() -> None:
    """The three operands of BELIEF are three kinds of node (KIP §46.1)."""
    by_variable, by_id, by_triple, slot = _where(
        '?a BELIEF (?p) ?b BELIEF (id: "P-1") ?c BELIEF (:s, "p", ?o) ?d BELIEF SLOT (:s, ?p)'
    )

    assert by_variable.target == var("p")  # type: ignore[union-attr]
    assert by_id.target == ast.PropositionById(id=lit("P-1"))  # type: ignore[union-attr]
    assert isinstance(by_triple.target, ast.Triple)  # type: ignore[union-attr]
    assert slot == ast.BeliefSlotPattern(variable="d", subject=ast.Parameter(name="s"), predicate=var("p"))


def test_function_and_aggregate_names_are_read_in_any_case() -> None:
    """Names are kept in upper case, so that the engine has one spelling."""
    assert _condition("contains(?x.a, 1)") == _condition("CONTAINS(?x.a, 1)")
    assert parse("find(count(distinct ?x)) where {}") == parse("FIND(COUNT(DISTINCT ?x)) WHERE {}")


def test_sort_keys_are_ascending_unless_they_say_otherwise() -> None:
    """ASC is the default and leaves no trace (KIP §44.7)."""
    assert parse("FIND(?x) WHERE {} ORDER BY ?x ASC") == parse("FIND(?x) WHERE {} ORDER BY ?x")
    assert parse("FIND(?x) WHERE {} ORDER BY ?x DESC") != parse("FIND(?x) WHERE {} ORDER BY ?x")


def test_the_clauses_of_a_body_have_no_order() -> None:
    """Two bodies of the same clauses are one body (KIP §53.4)."""
    one = 'CREATE CONCEPT ?c { TYPE "T" NAME "N" SET FIELDS {key: "k"} SET ATTRIBUTES {a: 1} }'
    two = 'CREATE CONCEPT ?c { SET ATTRIBUTES {a: 1} NAME "N" SET FIELDS {key: "k"} TYPE "T" }'

    assert parse(one) == parse(two)


def test_a_handle_may_be_used_before_it_is_declared() -> None:
    """References within MUTATE go both ways (KIP §53.3)."""
    block = parse("""MUTATE {
      CREATE EVIDENCE ?e { SET STRUCTURAL { ("generated_by", ?act) } }
      CREATE ACTIVITY ?act { SET STRUCTURAL { ("outputs", ?e) } }
    }""")

    assert isinstance(block, ast_kml.Mutate)
    assert [clause.handle for clause in block.clauses] == ["e", "act"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE ?x SET FIELDS {a: 1} WHERE { OPTIONAL { ?x {b: 1} } }",
        "UPDATE ?x SET FIELDS {a: 1} WHERE { UNION { (?x, :p, ?y) } }",
        "ARCHIVE ?x WHERE { ?y {about: [?x]} }",
        "ARCHIVE ?x WHERE { STRUCTURAL (?y, :f, ?x) }",
        "ARCHIVE ?x WHERE { ?y (?a, ?x, ?b) }",
        "MERGE CONCEPT ?x INTO :b WHERE { ?x {key: 1} }",
        "UPDATE :c SET STRUCTURAL { (:f, ?x) } WHERE { ?x {key: 1} }",
        "UPDATE ?x SET STRUCTURAL { (:f, :y) } WHERE { ?x EVIDENCE {} }",
        'MUTATE { CREATE CONCEPT ?x { TYPE "T" } ARCHIVE ?x }',
        'MUTATE { CREATE CONCEPT ?x { TYPE "T" } ARCHIVE ?x WHERE { ?x {a: 1} } }',
        "MUTATE { UPDATE :a SET FIELDS {b: 1} SET RETENTION :c {d: 1} }",
        'MUTATE { TRANSITION ACTIVITY :a TO "x" SET FIELDS {b: 1} SET RETENTION :c {d: 1} }',
    ],
)
def test_a_variable_is_bound_by_any_pattern_of_the_selection(text: str) -> None:
    """Patterns bind wherever they stand, also within OPTIONAL and UNION, and handles bind in MUTATE."""
    assert is_mutation(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "ARCHIVE ?x",
        "ARCHIVE ?x WHERE { NOT { ?x {a: 1} } }",
        "ARCHIVE ?x WHERE { ?y {a: 1} FILTER(?x.a == 1) }",
        "SUPERSEDE ASSERTION :a BY ?x",
        "MUTATE { ARCHIVE ?x WHERE { ?x {} } TOMBSTONE ?x }",
        'MUTATE { CREATE CONCEPT ?a { TYPE "T" SET STRUCTURAL { (:f, ?x) } } }',
        'ASSERT ({type: "Person", key: ?x}, "p", :b) {by: :me, mode: "stated"}',
        'ASSERT (:a, "p", :b) {by: :me, mode: "stated", evidence: [:e, ?x]}',
    ],
)
def test_a_variable_that_nothing_binds_is_a_reference_error(text: str) -> None:
    """NOT and FILTER bind nothing, and one statement's WHERE does not bind another's target."""
    with pytest.raises(NoemaError) as caught:
        parse(text)

    assert caught.value.code == "ReferenceError"
    assert "?x" in caught.value.message


def test_the_language_of_a_command_is_what_it_is() -> None:
    """Exactly the statements of KML may change a space (KIP §76)."""
    texts = {
        "FIND(?x) WHERE {}": "KQL",
        "MUTATE { ARCHIVE :x }": "KML",
        'PURGE :x CONFIRM "PURGE"': "KML",
        'PREVIEW KML "ARCHIVE :x"': "META",
        "EXPORT CAPSULE :c WHERE { ?c {} }": "META",
    }

    for text, language in texts.items():
        assert language_of(parse(text)) == language
        assert is_mutation(parse(text)) == (language == "KML")


def test_every_family_of_the_three_languages_is_a_node() -> None:
    """KML has eighteen families (three of which share a node) and META ten."""
    mutations = ast_kml.KmlStatement.__args__  # type: ignore[attr-defined]
    metas = ast_meta.MetaStatement.__args__  # type: ignore[attr-defined]

    assert len(mutations) == 18 - 2
    assert len(metas) == 10 + 1  # PREVIEW has two forms
