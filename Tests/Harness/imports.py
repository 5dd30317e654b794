"""What targets import and what `Package.swift` says that they depend on: the same.

A build does not tell: an undeclared import passes where another target happens to build the module first.
"""
import json
import pathlib
import re
import subprocess
import sys

IMPORT = re.compile(r"^\s*(?:@\w+\s+)*(?:(?:package|public|internal|private)\s+)?"
                    r"import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?(\w+)", re.MULTILINE)


def imports(target):
    sources = (pathlib.Path(target["path"]) / name for name in target["sources"])
    return {name for file in sources if file.suffix == ".swift" for name in IMPORT.findall(file.read_text(encoding="utf-8"))}


def complaints(package):
    modules = {target["c99name"]: target for target in package["targets"]}
    # Products of other packages are named as their modules are.
    products = {product for target in package["targets"] for product in target.get("product_dependencies", [])}
    for target in package["targets"]:
        declared = {module for module, other in modules.items() if other["name"] in target.get("target_dependencies", [])}
        declared.update(target.get("product_dependencies", []))
        used = imports(target) & (set(modules) | products)
        for module in sorted(used - declared):
            yield f"{target['name']} imports {module} and does not depend on it"
        for module in sorted(declared - used):
            # Tests run an executable, and a build runs a plugin, without an import.
            if module in products or modules[module]["type"] in ("library", "system-target"):
                yield f"{target['name']} depends on {module} and imports it nowhere"


def main():
    described = subprocess.run(["swift", "package", "describe", "--type", "json"], check=True, capture_output=True, text=True)
    found = list(complaints(json.loads(described.stdout)))
    for complaint in found:
        print(f"Package.swift: {complaint}", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
