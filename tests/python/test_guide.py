"""The guide of the Python package, whose blocks are one program, which runs; and the README."""
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


def test_the_readme_shows_the_counter():
    shown, = [block.text for block in blocks(TOP / "README.md") if block.kind == "python"]
    program = (TOP / "client/python/examples/counter.py").read_text()
    assert program.partition("import sys\n")[2] == shown.partition("import sys\n")[2]
