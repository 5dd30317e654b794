"""What `imports` says of a package."""
import pathlib
import tempfile
import unittest

from . import imports


def target(folder, name, text="", needs=(), products=(), kind="library"):
    path = pathlib.Path(folder) / name
    path.mkdir()
    (path / "File.swift").write_text(text, encoding="utf-8")
    return {"name": name, "c99name": name.replace("-", "_"), "type": kind, "path": str(path), "sources": ["File.swift"],
            "target_dependencies": list(needs), "product_dependencies": list(products)}


class Complaints(unittest.TestCase):
    def said(self, text, needs=(), products=(), kind="library"):
        """Of a target `Upper` that imports so and declares so, beside others."""
        with tempfile.TemporaryDirectory() as folder:
            targets = [target(folder, "Lower"), target(folder, "a-tool", kind="executable"),
                       target(folder, "Other", "import Yams\n", products=["Yams"]),
                       target(folder, "Upper", text, needs, products, kind)]
            return list(imports.complaints({"targets": targets}))

    def test_every_way_to_write_an_import_is_seen(self):
        for text in ("import Lower", "@testable import Lower", "package import Lower", "@_exported public import Lower",
                     "internal import struct Lower.Thing", "#if os(Linux)\n  import Lower\n#endif", "import Foundation\nimport Lower"):
            with self.subTest(text):
                self.assertEqual(self.said(text, needs=["Lower"]), [])
                self.assertEqual(self.said(text), ["Upper imports Lower and does not depend on it"])

    def test_another_packages_product_counts(self):
        self.assertEqual(self.said("import Yams"), ["Upper imports Yams and does not depend on it"])
        self.assertEqual(self.said("", products=["Yams"]), ["Upper depends on Yams and imports it nowhere"])
        self.assertEqual(self.said("import Yams", products=["Yams"]), [])

    def test_what_is_not_an_import_is_none(self):
        self.assertEqual(self.said("// import Lower\nlet important = 1 // as import Lower"), [])

    def test_a_library_that_nothing_imports_is_named_and_an_executable_is_not(self):
        self.assertEqual(self.said("", needs=["Lower"]), ["Upper depends on Lower and imports it nowhere"])
        self.assertEqual(self.said("", needs=["a-tool"], kind="test"), [])


if __name__ == "__main__":
    unittest.main()
