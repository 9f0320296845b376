#!/usr/bin/env python3
"""Writes the manual pages from what the sources say of themselves.

    man.py --build BUILD --output FOLDER

Section 1 is from `perseas --help` and `perseas COMMAND --help`, 3 from the comments of
client/perseas.h and the headers that it includes, and of client/cpp, rvm and rds, 5 and 8 from
`perseasd --help` and the --help of the scripts. A page that would say nothing (no help, a function
without a comment) is an error.
"""
import argparse
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]
VERSION = (TOP / "VERSION").read_text().strip()


ABOUT_LEAST = 24                # columns: less of a sentence says too little


class Fault(Exception):
    """The sources do not say what a page needs."""


# --- roff ---

def escaped(text):
    """Text as roff takes it anywhere in a line."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    text = text.replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha")
    text = text.replace("~", "\\(ti")
    return "".join(c if ord(c) < 128 else "\\[u%04X]" % ord(c) for c in text)


def line(text):
    """A whole line of text: what begins with a point is no request."""
    text = escaped(text)
    return "\\&" + text if text.startswith(".") else text


class Page:
    """A manual page under construction."""

    def __init__(self, name, section, about):
        self.name, self.section = name, section
        self.rows = ['.TH "%s" %d "" "Perseas %s" "Perseas"' % (
            escaped(name.upper()), section, escaped(VERSION)), ".SH NAME",
            "%s \\- %s" % (escaped(name), escaped(about.rstrip(".")))]

    def heading(self, title):
        self.rows.append('.SH "%s"' % title)

    def paragraph(self, text):
        self.rows += [".PP", line(" ".join(text.split()))]

    def verbatim(self, rows):
        """Lines as they stand."""
        margin = min(len(row) - len(row.lstrip()) for row in rows if row.strip())
        self.rows += [".PP", ".in +4n", ".nf"]
        self.rows += [line(row[margin:].replace("\t", "        ")) for row in rows]
        self.rows += [".fi", ".in"]

    def item(self, term, text):
        self.rows += [".TP", ".B " + quoted(term), line(" ".join(text.split()) or "None.")]

    def prose(self, rows):
        """Paragraphs that are filled, and indented blocks that are not."""
        for block in blocks(rows):
            if all(row.startswith(" ") for row in block):
                self.verbatim(block)
            else:
                self.paragraph(" ".join(block))

    def references(self, pages):
        """("perseas", 1), …"""
        self.heading("SEE ALSO")
        names = ["\\fB%s\\fR(%d)" % (escaped(name), section) for name, section in pages
                 if (name, section) != (self.name, self.section)]
        self.rows.append(",\n".join(names))

    def write(self, folder):
        place = folder / ("man%d" % self.section)
        place.mkdir(parents=True, exist_ok=True)
        path = place / ("%s.%d" % (self.name, self.section))
        path.write_text("\n".join(self.rows) + "\n")


def quoted(text):
    return '"%s"' % escaped(text).replace('"', "\\(dq")


def blocks(rows):
    """Lists of lines with blank ones between them; also where the indentation begins or ends."""
    block, indented = [], False
    for row in rows:
        if block and (not row.strip() or row.startswith(" ") != indented):
            yield block
            block = []
        if row.strip():
            block.append(row)
            indented = row.startswith(" ")
    if block:
        yield block


# --- what a program's --help says ---

class Help:
    """usage: its lines; rest: [(title or None, its lines)], where a title was a line of its own."""

    def __init__(self, text):
        lines = text.rstrip("\n").split("\n")
        if not lines[0].lower().startswith("usage:"):
            raise Fault("no usage: " + lines[0])
        end = 1
        while lines[end].startswith(" "):
            end += 1
        self.usage = [lines[0].split(":", 1)[1].strip()] + [row.strip() for row in lines[1:end]]
        self.rest, title, rows = [], None, []
        for row in lines[end:]:
            if re.match(r"[A-Z][^:]*:$", row):
                self.rest.append((title, rows))
                title, rows = row[:-1], []
            else:
                rows.append(row)
        self.rest.append((title, rows))


def items(rows):
    """(term, text) of a table of options, commands or numbers; what continues one is deeper."""
    found = []
    for row in rows:
        match = re.match(r"  (\S+(?: \S+)*)(?: {2,}(\S.*))?$", row)
        if match:
            found.append([match.group(1), match.group(2) or ""])
        elif row.strip() and found:
            found[-1][1] += " " + row.strip()
    return found


def is_table(rows):
    """Are these lines `  --name VALUE   what it does`, or `  0  what it means`?"""
    first = next((row for row in rows if row.strip()), "")
    return bool(re.match(r"  (--\S|\d  |\w+  )", first))


def add_help(page, text, skip=()):
    """All of a help text but its usage."""
    described = False
    for title, rows in text.rest:
        if title in skip:
            continue
        if title is None or title in ("Example", "Examples"):
            page.heading("DESCRIPTION" if title is None else title.upper())
        else:
            page.heading("OPTIONS" if title.startswith("Options") else title.upper())
        for block in blocks(rows):
            if is_table(block):
                if title is None and block[0].startswith("  --") and described:
                    page.heading("OPTIONS")
                for term, meaning in items(block):
                    page.item(term, meaning)
            else:
                page.prose(block)
                described = True


def synopsis(page, program, lines):
    page.heading("SYNOPSIS")
    for i, usage in enumerate(joined(program, lines)):
        rest = usage[len(program):].strip()
        page.rows += [".br"] if i else []
        page.rows.append("\\fB%s\\fR %s" % (escaped(program), escaped(rest)))


def joined(program, lines):
    """Usages that take several lines as one line each."""
    found = []
    for row in lines:
        if row.startswith(program) or not found:
            found.append(row)
        else:
            found[-1] += " " + row
    return [" ".join(row.split()) for row in found]


def run(*words):
    done = subprocess.run([str(w) for w in words], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, check=True, timeout=60)
    return done.stdout


# --- sections 1, 5 and 8 ---

PROGRAMS = [("perseas", 1), ("perseasd", 8), ("perseasd.conf", 5), ("perseas-rxe", 8),
            ("perseas-power", 8), ("libperseas", 3), ("librvm-perseas", 3),
            ("librds-perseas", 3)]
SCRIPTS = ("deploy/perseas-rxe", "deploy/nut/perseas-power")
ENVIRONMENT = ("PERSEAS_RDMA", "off: this process makes no use of RDMA, whatever both ends have.")
WRITTEN_PAGES = ("PERSEAS_WRITTEN_PAGES", "off: where this process compares memory with a copy, it "
                 "compares all of it, and not only the pages that were written.")
LIFELINES = ("PERSEAS_LIFELINES", "off: no second connection is made to each mirror, by which it "
             "hears of the end of a killed process though the system is still freeing its memory.")


def command_pages(perseas, folder):
    whole = run(perseas, "--help").split("\n\n")
    about = whole[0].split(" - ", 1)[1]
    parts = dict(zip([part.split("\n", 1)[0] for part in whole], whole))
    title = next(part for part in parts if part.startswith("Commands"))
    verbs = items(parts[title].split("\n")[1:])
    page = Page("perseas", 1, about)
    page.heading("SYNOPSIS")
    page.rows += ["\\fBperseas\\fR \\fICOMMAND\\fR [\\fIWORD\\fR...] [\\fIOPTION\\fR...]"]
    page.heading("DESCRIPTION")
    page.prose(next(part for part in whole if part.startswith("LIST is ")).split("\n"))
    page.paragraph("Each command has a page of its own, as perseas-status(1); perseas COMMAND "
                   "--help prints the same.")
    page.heading("COMMANDS")
    for verb, summary in verbs:
        page.item(verb, summary + ": perseas-%s(1)." % verb)
    for part in whole:
        if part.startswith(("Options", "Exit status")):
            page.heading("EXIT STATUS" if part[0] == "E" else "OPTIONS")
            for term, meaning in items(part.split("\n")[1:]):
                page.item(term, meaning)
    page.heading("ENVIRONMENT")
    page.item(*ENVIRONMENT)
    page.references(PROGRAMS + [("perseas-" + verb, 1) for verb, _ in verbs])
    page.write(folder)
    for verb, summary in verbs:
        verb_page(perseas, verb, summary, folder)


def verb_page(perseas, verb, summary, folder):
    text = Help(run(perseas, verb, "--help"))
    page = Page("perseas-" + verb, 1, summary)
    synopsis(page, "perseas " + verb, text.usage)
    add_help(page, text)
    page.references(PROGRAMS)
    page.write(folder)


def daemon_pages(perseasd, folder):
    text = Help(run(perseasd, "--help"))
    rows = text.rest[0][1]
    # The first paragraph says what the program is.
    about = " ".join(next(blocks(rows))).split(".")[0]
    page = Page("perseasd", 8, about[0].lower() + about[1:])
    synopsis(page, "perseasd", text.usage)
    add_help(page, text)
    page.references(PROGRAMS)
    page.write(folder)

    page = Page("perseasd.conf", 5, "options of perseasd, the daemon of a mirror")
    page.heading("DESCRIPTION")
    page.paragraph("The file that perseasd --config names. Each line is NAME VALUE or NAME = "
                   "VALUE; # begins a comment. What the command line sets as well is taken from "
                   "there; listeners of both are used. The unit of systemd reads "
                   "/etc/perseasd.conf.")
    page.heading("OPTIONS")
    # What the file cannot have stands below a title of its own.
    options = [(term[2:], meaning) for block in blocks(rows) if is_table(block)
               for term, meaning in items(block)]
    if len(options) < 5:
        raise Fault("perseasd --help has no table of options")
    for term, meaning in options:
        page.item(term, meaning)
    page.heading("EXAMPLE")
    page.verbatim(["listen 192.0.2.1:7170", "unix /run/perseas/socket", "max-memory 64G"])
    page.references(PROGRAMS)
    page.write(folder)


def script_page(path, folder):
    text = Help(run("sh", TOP / path, "--help"))
    about = " ".join(next(blocks(text.rest[0][1]))).rstrip(".")
    if about[1].islower():
        about = about[0].lower() + about[1:]
    page = Page(pathlib.PurePath(path).name, 8, about)
    synopsis(page, page.name, text.usage)
    add_help(page, text)
    page.references(PROGRAMS)
    page.write(folder)


# --- section 3 ---

def bare(comment):
    """A comment's lines without its marks."""
    rows = comment.strip()[2:-2].strip("\n").split("\n")
    return [re.sub(r"^\s*\* ?", "", row).strip() for row in rows]


class Function:
    """A declaration, and the comment above it."""

    def __init__(self, comment, declaration):
        self.declaration = " ".join(declaration.split())
        self.name = re.search(r"(perseas_\w+)\(", declaration).group(1)
        self.paragraphs = [" ".join(block) for block in blocks(bare(comment))]
        self.errors = None
        for i, text in enumerate(self.paragraphs):
            said = re.search(r"(?:^|(?<=[.:)] ))Errors: ", text)
            if said:
                self.paragraphs[i] = text[:said.start()].strip()
                self.errors = text[said.end():]
        self.paragraphs = [text for text in self.paragraphs if text]
        self.codes = re.findall(r"\bE[A-Z]{3,}\b", comment)

    @property
    def about(self):
        """The first sentence, for the line of whatis."""
        if not self.paragraphs:
            raise Fault("%s has no description" % self.name)
        text = re.sub(r"\s*\((?:PERSEAS|I\d)[^)]*\)", "", self.paragraphs[0])
        sentence = re.split(r"\.(?:\s|$)", text)[0]
        text = re.split(r"[:;,] ", sentence)[0]
        if len(text) < ABOUT_LEAST:
            text = sentence
        return text[0].lower() + text[1:]

    @property
    def returns_int(self):
        return self.declaration.startswith("int ")


class Header:
    """A public header; base: the one that it belongs to, whose errors and types it uses."""

    def __init__(self, text, base=None):
        self.text, self.base = text, base
        self.intro = [" ".join(block) for block in blocks(bare(
            re.match(r"/\*.*?\*/", text, re.S).group(0)))]
        self.errors = [(name, int(code), said) for name, code, said in re.findall(
            r'X\((PERSEAS_E\w+), (-\d+),\s*"([^"]*)"\)', text)] or base.errors
        self.functions = [Function(*found) for found in re.findall(
            r"(/\*(?:[^*]|\*(?!/))*\*/)\n"
            r"((?:const char \*|int |void \*?|uint64_t )perseas_\w+\([^;]*\);)", text)]
        self.types = dict(self.find_types())

    def find_types(self):
        """(name, its lines) of every struct and enum, with the comment above it."""
        pattern = r"((?:/\*(?:[^*]|\*(?!/))*\*/\n)?)((?:struct|enum) (perseas_\w+) \{.*?\n\};)"
        for comment, body, name in re.findall(pattern, self.text, re.S):
            if name != "perseas_error":
                yield name, (comment + body).split("\n")

    def paragraph(self, beginning):
        found = [text for text in self.intro if text.startswith(beginning)]
        if not found and self.base:
            return self.base.paragraph(beginning)
        if not found:
            raise Fault("perseas.h does not begin with a paragraph '%s'" % beginning)
        return found[0]

    def all_types(self):
        return {**self.base.all_types(), **self.types} if self.base else self.types

    def types_of(self, function):
        """Those that its arguments point to, and those of their members."""
        types = self.all_types()
        wanted = re.findall(r"(?:struct|enum) (perseas_\w+)", function.declaration)
        for name in wanted:
            for inner in re.findall(r"enum (perseas_\w+)", "\n".join(types.get(name, []))):
                if inner not in wanted:
                    wanted.append(inner)
        return [name for name in wanted if name in types]


def add_declaration(page, function):
    """Long ones break behind a comma."""
    head, arguments = function.declaration.split("(", 1)
    rows = [head + "("]
    for word in re.split(r"(?<=, )", arguments):
        if len(rows[-1]) + len(word) > 76:
            rows.append("        ")
        rows[-1] += word
    page.verbatim(["#include <perseas.h>", ""] + rows)


def add_errors(page, header, codes):
    for name, code, said in header.errors:
        if codes is None or name[len("PERSEAS_"):] in codes:
            page.item("%s (%d)" % (name, code), said[0].upper() + said[1:] + ".")


def function_page(header, function, folder):
    page = Page(function.name, 3, function.about)
    page.heading("SYNOPSIS")
    add_declaration(page, function)
    page.heading("DESCRIPTION")
    for text in function.paragraphs:
        page.paragraph(text)
    types = header.types_of(function)
    if types:
        page.heading("TYPES")
    for name in types:
        page.verbatim(header.all_types()[name])
    page.heading("RETURN VALUE")
    if function.returns_int:
        page.paragraph(header.paragraph("All functions that return int"))
    elif re.match(r"void [^*]", function.declaration):
        page.paragraph("None.")
    elif not function.declaration.startswith("const char *"):
        page.paragraph("What the description says.")
    else:
        page.paragraph("A text that ends with a zero, and is never NULL; it is not the caller's "
                       "to free.")
    if function.errors or function.codes:
        page.heading("ERRORS")
    if function.errors:
        page.paragraph(function.errors)
    add_errors(page, header, function.codes)
    page.heading("THREADS")
    page.paragraph(upper(header.paragraph("Threads:").split(": ", 1)[1]))
    page.references([("libperseas", 3), ("perseas", 1)])
    page.write(folder)


def cpp_page(folder):
    """The C++ binding: what its headers say of themselves at their beginnings."""
    def opening(path):
        text = re.match(r"/\*.*?\*/", path.read_text(), re.S).group(0)
        rows = [re.sub(r"^ \*( |$)", "", row) for row in text[2:-2].strip("\n ").split("\n")]
        first, _, rest = " ".join(next(blocks(rows))).partition(". ")
        return first.partition(" - ")[2], rest, rows[len(next(blocks(rows))):]

    place = TOP / "client/cpp"
    about, rest, more = opening(place / "perseas.hpp")
    page = Page("perseas.hpp", 3, about)
    page.heading("SYNOPSIS")
    page.verbatim(["#include <perseas.hpp>", "",
                   "c++ -std=c++17 FILE $(pkg-config --cflags --libs perseas)"])
    page.heading("DESCRIPTION")
    page.paragraph(rest)
    page.prose(more)
    for path in sorted((place / "perseas").glob("*.hpp")):
        about, rest, more = opening(path)
        page.heading("<perseas/%s>" % path.name)
        page.paragraph(upper(about) + ". " + rest)
        page.prose(more)
    page.references([("libperseas", 3), ("perseas_open", 3), ("perseas_commit", 3)])
    page.write(folder)


def upper(text):
    return text[0].upper() + text[1:]


def library_pages(folder):
    header = Header((TOP / "client/perseas.h").read_text())
    headers = [header] + [Header(path.read_text(), header)
                          for path in sorted((TOP / "client").glob("perseas_*.h"))]
    title, *_ = header.intro
    page = Page("libperseas", 3, title.split(" - ", 1)[1])
    page.heading("SYNOPSIS")
    page.verbatim(["#include <perseas.h>", "", "cc ... $(pkg-config --cflags --libs perseas)"])
    page.heading("DESCRIPTION")
    for text in header.intro[1:]:
        if not text.startswith(("Threads:", "Processes:")):
            page.paragraph(text)
    page.heading("FUNCTIONS")
    for each in headers:
        for function in each.functions:
            page.item("%s(3)" % function.name, upper(function.about) + ".")
    page.heading("TYPES")
    for each in headers:
        for rows in each.types.values():
            page.verbatim(rows)
    page.heading("ERRORS")
    add_errors(page, header, None)
    for title in ("Threads", "Processes"):
        page.heading(title.upper())
        page.paragraph(upper(header.paragraph(title + ":").split(": ", 1)[1]))
    page.heading("ENVIRONMENT")
    page.item(*ENVIRONMENT)
    page.item(*WRITTEN_PAGES)
    page.item(*LIFELINES)
    page.references(PROGRAMS)
    page.write(folder)
    for each in headers:
        for function in each.functions:
            function_page(each, function, folder)


# Pages of RVM's interfaces: the name, what codes of errors begin with, and the headers.
RVM_PAGES = (("rvm", r"RVM_E\w+ +2\d\d", ("rvm/rvm.h", "rvm/rvm_statistics.h")),
             ("rds", r"(?:E\w+ +\(-\d+\)|RVM_E\w+ 2000)", ("rds/rds.h", "rds/rvm_segment.h")))


def add_rvm_functions(page, text):
    """Declarations of a header, each up to an empty line, with the comment above them; and comments
    that stand alone."""
    comment = r"/\*(?:[^*]|\*(?!/))*\*/\n"
    declared = r"(?:extern [^;]*;.*\n|#define (?:.*\\\n)*.*\n)+"
    pattern = r"^(%s)?(%s)|^(%s)(?=\n)" % (comment, declared, comment)
    text = text.partition("*/")[2]
    for above, rows, alone in re.findall(pattern, text, re.M):
        if "(" in rows:
            page.verbatim(rows.rstrip("\n").split("\n"))
        if (above or alone) and "(" in rows + alone and not alone.startswith("/* ---"):
            for block in blocks(bare(above or alone)):
                page.paragraph(" ".join(block))


def rvm_page(folder, name, codes, headers):
    """One page for an interface of RVM's: it has the names that RVM's own pages may have."""
    texts = [(TOP / "client" / header).read_text() for header in headers]
    intros = [[" ".join(block) for block in blocks(bare(
        re.match(r"/\*.*?\*/", text, re.S).group(0)))] for text in texts]
    page = Page("lib%s-perseas" % name, 3, intros[0][0].split(" - ", 1)[1])
    page.heading("SYNOPSIS")
    page.verbatim(["#include <%s>" % header.split("/")[1] for header in headers] + [
        "", "cc ... $(pkg-config --cflags --libs %s-perseas)" % name])
    page.heading("DESCRIPTION")
    for intro in intros if name == "rds" else intros[:1]:
        for text in intro[1:]:
            page.paragraph(text)
    page.heading("FUNCTIONS")
    for text in texts:
        add_rvm_functions(page, text)
    page.heading("TYPES")
    for text in texts:
        for rows in re.findall(r"^typedef (?:struct|enum) .*?\n\} \w+;", text, re.S | re.M):
            page.verbatim(rows.split("\n"))
    page.heading("ERRORS")
    page.verbatim(re.findall(r"^#define %s.*" % codes, "".join(texts), re.M))
    page.references(PROGRAMS)
    page.write(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    command_pages(options.build / "perseas", options.output)
    daemon_pages(options.build / "perseasd", options.output)
    for script in SCRIPTS:
        script_page(script, options.output)
    library_pages(options.output)
    cpp_page(options.output)
    for name, codes, headers in RVM_PAGES:
        rvm_page(options.output, name, codes, headers)


if __name__ == "__main__":
    try:
        main()
    except (Fault, OSError, subprocess.SubprocessError) as why:
        sys.exit("man.py: %s" % why)
