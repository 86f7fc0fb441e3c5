"""Hooks of the site (mkdocs.yml): its navigation, the links that leave docs/, and GitHub's Markdown where it differs."""

import os
import posixpath
import re
import tomllib
from pathlib import Path

from dark import dark
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]

# The folders of docs/ in the order of the navigation, with the pages that come first. Others follow by their titles.
SECTIONS = {
    "start": ("Start", ["install.md", "concepts.md", "coming-from.md"]),
    "tutorials": ("Tutorials", []),
    "how-to": ("How-to", []),
    "tunnel": ("Tunnel", ["setup.md", "operate.md"]),
    "reference": ("Reference", ["cli.md", "scenario.md"]),
    "explanation": ("Explanation", []),
    "evidence": ("Evidence", ["validation.md", "peers.md", "performance.md"]),
}
# Pages of the root's folder that the site has.
PROJECT = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "SECURITY.md": "project/security.md",
}
ORIGIN = {page: source for source, page in PROJECT.items()}
LINK = re.compile(r"`+[^`]+`+|(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
DEFINITION = re.compile(r"^\[[^\]]+\]: (\S+)$", re.MULTILINE)
# Fenced code, and code by indentation.
CODE = re.compile(r"((?:^ *```[^\n]*\n(?:.*?\n)??^ *```$\n?)|(?:(?<=\n\n)(?: {4}[^\n]*\n)+))", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"( *)([-*+]|\d+\.) +")


def on_config(config):
    """Makes the navigation of the folders, so that a new page is in it."""
    docs = Path(config.docs_dir)
    config.nav = [{"Home": "index.md"}]
    for folder, (title, first) in SECTIONS.items():
        if (docs / folder).is_dir():
            config.nav.append({title: section(docs, folder, first)})
    rest = [page.name for page in docs.glob("*.md") if page.name != "index.md"]
    config.nav.append({"Project": [*sorted(rest), *PROJECT.values()]})
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    return config


def section(docs, folder, first):
    """The pages of a folder, and a list for each folder in it."""
    place = {name: number for number, name in enumerate(["index.md", *first])}
    pages = sorted((docs / folder).glob("*.md"), key=lambda page: (place.get(page.name, len(place)), order(page)))
    entries = [f"{folder}/{page.name}" for page in pages]
    for inner in sorted(path for path in (docs / folder).iterdir() if path.is_dir() and any(path.glob("*.md"))):
        entries.append({inner.name.replace("-", " ").capitalize(): section(docs, f"{folder}/{inner.name}", [])})
    return entries


def order(page):
    """Numbered pages by their number, others by title."""
    return page.name if page.name[0].isdigit() else title(page)


def title(page):
    """The first heading of a page."""
    lines = page.read_text().splitlines()
    return next((line.removeprefix("# ").lower() for line in lines if line.startswith("# ")), page.name)


def slug(heading, separator):
    """A heading's anchor, as GitHub makes it."""
    return "".join(c for c in heading.lower() if c.isalnum() or c in " -_").replace(" ", separator)


def on_files(files, config):
    """Adds the pages of the root's folder."""
    for source, page in PROJECT.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    for figure in [file for file in files if is_figure(file.src_uri)]:
        if figure.src_uri.replace(".svg", "-dark.svg") not in {file.src_uri for file in files}:
            files.append(File.generated(config, figure.src_uri.replace(".svg", "-dark.svg"), content=dark(figure.content_string)))
    return files


def is_figure(path):
    """Whether a file is a figure of a report, in light colours."""
    return path.startswith("figures/") and path.endswith(".svg") and not path.endswith("-dark.svg")


def on_page_markdown(markdown, page, config, files):
    """Makes the links that leave docs/ valid, and the lists what GitHub makes of them."""
    uri = page.file.src_uri
    source = ORIGIN.get(uri, f"docs/{uri}")
    known = {file.src_uri for file in files}
    blocks = CODE.split(markdown)
    for number in range(0, len(blocks), 2):
        text = LINK.sub(lambda link: linked(link, source, uri, known), blocks[number])
        # Elsewhere than on GitHub, `[a] [b]` is one link.
        text = re.sub(r"(`+[^`]+`+)|\] \[", lambda found: found[1] or "]&nbsp;[", text)
        blocks[number] = DEFINITION.sub(
            lambda link: link[0].replace(link[1], target(link[1], source, uri, known) or link[1]), text
        )
    return nested("".join(blocks))


def linked(link, source, uri, known):
    """A link as the site has it; the path as code if it leads to a file of the sources and their address is unknown."""
    image, text, where = link[1], link[2], link[3]
    if where is None or "://" in where or where.startswith(("#", "mailto:")):
        return link[0]
    found = target(where, source, uri, known)
    if found and image and is_figure(resolved(where, source)[0].removeprefix("docs/")):
        both = ((found, "light"), (found.replace(".svg", "-dark.svg"), "dark"))
        return "".join(f"![{text}]({figure}#only-{scheme})" for figure, scheme in both)
    if found:
        return f"{image}[{text}]({found})"
    path = resolved(where, source)[0]
    plain = text.strip("`")
    return f"`{path}`" if posixpath.basename(path) == posixpath.basename(plain.rstrip("/")) else f"{text} (`{path}`)"


def resolved(where, source):
    """The path below the root's folder that a link of the file `source` leads to, and its anchor."""
    path, _, anchor = where.partition("#")
    joined = posixpath.normpath(posixpath.join(posixpath.dirname(source), path)) if path else source
    return joined, f"#{anchor}" if anchor else ""


def target(where, source, uri, known):
    """What the site calls the page or file of a link: a path relative to the page `uri`, or an address; None without one."""
    if "://" in where or where.startswith(("#", "mailto:")):
        return where
    path, anchor = resolved(where, source)
    of_site = PROJECT.get(path) or path.removeprefix("docs/")
    is_page = path in PROJECT or (path.startswith("docs/") and of_site in known)
    if is_page or (path.startswith("docs/") and not (ROOT / path).exists()):
        return posixpath.relpath(of_site, posixpath.dirname(uri) or ".") + anchor
    if path == "README.md":
        return posixpath.relpath("index.md", posixpath.dirname(uri) or ".")
    address = repository()
    return f"{address}/{'tree' if (ROOT / path).is_dir() else 'blob'}/main/{path}{anchor}" if address else None


def repository():
    """The repository's address, if Cargo.toml has it."""
    package = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    return package.get("repository", "").removesuffix("/") or None


def nested(markdown):
    """Lists that follow a paragraph at once, and whose inner lines have the indentation of their text, as four blanks."""
    lines, offsets, fenced, before = [], [], False, ""
    for line in markdown.split("\n"):
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        if text and not fenced:
            item = ITEM.match(line)
            while offsets and indent < offsets[-1] and (item or not before):
                offsets.pop()
            if item and not offsets and indent < 4:
                if before and not ITEM.match(before):
                    lines.append("")
            if offsets:
                depth = sum(indent >= offset for offset in offsets)
                line = " " * (4 * depth + indent - (offsets[depth - 1] if depth else 0)) + text
            if item and (offsets or indent < 4):
                offsets.append(len(item[0]))
            elif not before and indent == 0:
                offsets.clear()
        elif fenced and offsets:
            line = " " * max(0, 4 * len(offsets) + indent - offsets[-1]) + text if text else line
        fenced ^= text.startswith("```")
        lines.append(line)
        before = text if not offsets else line
    return "\n".join(lines)


def on_post_build(config):
    """Nothing of the site asks another server."""
    pattern = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//", re.IGNORECASE)
    for folder, _, names in os.walk(config.site_dir):
        for name in names:
            path = Path(folder) / name
            if path.suffix == ".html" and (found := pattern.search(path.read_text())):
                raise RuntimeError(f"{path}: asks another server: {found[0]}")
