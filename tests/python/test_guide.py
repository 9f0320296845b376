"""The guide of the Python package, whose blocks are one program, which runs."""
from drill import TOP, mirror_list
from guide import blocks

GUIDE = TOP / "doc/python.md"


def test_the_guide_shows_what_happens(mirrors):
    """Line numbers of failures are those of the guide."""
    names, text = {"mirrors": mirror_list(mirrors(3))}, GUIDE.read_text()
    found = [block for block in blocks(GUIDE) if block.kind == "python"]
    assert len(found) >= 8
    for block in found:
        above = text[:text.index(block.text)].count("\n")
        code = compile("\n" * above + block.text, str(GUIDE), "exec")
        exec(code, names)
