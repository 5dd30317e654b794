"""What the executable can be told is in its help, its manual pages, its completions, and the documentation."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

from . import ground

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ground.ROOT, "scripts", "packaging"))
import manual  # noqa: E402


def output(*words):
    return subprocess.run([ground.godwit(), *words], stdout=subprocess.PIPE, check=True).stdout.decode()


def documentation():
    """README and the pages, as one text."""
    paths = [os.path.join(ground.ROOT, "README.md")]
    paths += glob.glob(os.path.join(ground.ROOT, "Sources", "Godwit", "Godwit.docc", "*.md"))
    text = ""
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text += file.read()
    return text


def keys(schema, path=()):
    """The keys of a schema's objects, from the outermost."""
    for name, value in schema.get("properties", {}).items():
        yield path + (name,)
        for inner in [value, *value.get("oneOf", [])]:
            yield from keys(inner, path + (name,))


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dump = output("--experimental-dump-help")
        cls.pages = list(manual.pages(["godwit"], json.loads(cls.dump)["command"]))

    def options(self):
        for words, command in self.pages:
            for argument in filter(manual.is_shown, command.get("arguments", [])):
                for name in manual.names(argument):
                    yield words, name

    def test_every_option_has_a_manual_entry_and_a_completion(self):
        completions = {shell: output("--generate-completion-script", shell) for shell in ("bash", "zsh", "fish")}
        count = 0
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, manual.__file__, "--directory", folder, "--version", "0", "--date",
                            "2026-01-01"], input=self.dump.encode(), check=True)
            for words, name in self.options():
                with open(os.path.join(folder, "-".join(words) + ".1"), encoding="utf-8") as file:
                    page = file.read()
                shown = "\\-" + manual.escaped(name[2:]) if name.startswith("--") else name[1:]
                self.assertIn(f"Fl {shown}", page, f"{words} {name}")
                for shell, text in completions.items():
                    self.assertIn(name if shell != "fish" else name.lstrip("-"), text, f"{shell}: {words} {name}")
                count += 1
        self.assertGreater(count, 80)

    def test_every_command_is_in_the_documentation(self):
        text = documentation()
        for words, command in self.pages:
            if len(words) > 1 and not manual.shown(command):
                self.assertIn(words[1], text, " ".join(words))

    def test_every_key_of_a_pipeline_is_in_the_documentation(self):
        with open(os.path.join(ground.ROOT, "Pipelines", "pipeline.schema.json"), encoding="utf-8") as file:
            found = list(keys(json.load(file)))
        self.assertGreater(len(found), 30)
        text = documentation()
        for key in found:
            self.assertTrue(f"{key[-1]}:" in text or f"`{'.'.join(key)}`" in text or f"`{key[-1]}`" in text,
                            ".".join(key))

    def test_every_exit_code_is_in_the_documentation(self):
        with open(os.path.join(ground.ROOT, "Sources", "Godwit", "Godwit.docc", "Outcomes.md"), encoding="utf-8") as file:
            text = file.read()
        for code, _ in manual.EXIT_CODES:
            self.assertIn(f"| {code} |", text)


if __name__ == "__main__":
    unittest.main()
