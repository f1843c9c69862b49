"""Prints a document."""

from desk import ROOT, arguments

name = arguments("document").document
file = (ROOT / "documents" / f"{name}.md").resolve()
if file.parent != ROOT / "documents" or not file.is_file():
    raise SystemExit(f"no document {name}")
print(file.read_text(encoding="utf-8"), end="")
