#!/usr/bin/env python3
"""Packs a built godwit: a Debian package, and an archive that is unpacked below a prefix.

    SOURCE_DATE_EPOCH=SECONDS package.py --executable FILE --output DIR

What is packed depends on the executable, the repository's files and SOURCE_DATE_EPOCH alone: names are
sorted, times and owners are fixed.
"""
import argparse
import datetime
import email.utils
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUMMARY = "migrates Core Data's SQLite stores on Linux"
DESCRIPTION = f"""{SUMMARY}
 Godwit brings SQLite files that Apple's Core Data wrote from one version of
 their managed object model to another, with the result of Core Data's own
 migration: one store, or a fleet of them from cron. It verifies each result
 before it replaces the source, keeps a backup, and resumes after a crash."""
POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ]; then
  if ! getent passwd godwit >/dev/null; then
    adduser --quiet --system --group --no-create-home --home /var/lib/godwit godwit
  fi
  install -d -o godwit -g adm -m 0750 /var/log/godwit
  if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
fi
"""
POSTRM = """#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
"""
README = """godwit {version}, for {machine} Linux with glibc {glibc} or later.

Swift's libraries are part of the executable. It needs four of the system's: {libraries}.

    tar -xzf {name}.tar.gz
    sudo cp -a {name}/. /usr/local/

The executable also runs where it lies: {name}/bin/godwit. share/man has the manual pages,
share/doc/godwit/examples a crontab, lib/systemd/system a service and a timer, which run as the user godwit:

    sudo useradd --system --user-group --home-dir /var/lib/godwit --shell /usr/sbin/nologin godwit
"""


def run(*command, **named):
    """A command's output; a failure ends the script."""
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, **named).stdout


def write(path, text, mode=0o644):
    """A file with its folders."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def settle_times(folder, epoch):
    """Gives everything in a folder the same time, and modes that do not depend on the umask."""
    for base, folders, files in os.walk(folder, topdown=False):
        for name in files:
            path = os.path.join(base, name)
            os.chmod(path, 0o755 if os.stat(path).st_mode & 0o100 else 0o644)
            os.utime(path, (epoch, epoch))
        os.chmod(base, 0o755)
        os.utime(base, (epoch, epoch))


def compress(path):
    """FILE becomes FILE.gz, without name and time in its header."""
    with open(path, "rb") as file:
        content = file.read()
    with open(path + ".gz", "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(content)
    os.remove(path)


def installed(executable, prefix, into):
    """What scripts/install installs."""
    subprocess.run([os.path.join(ROOT, "scripts", "install"), "--prefix", prefix, "--destdir", into,
                    "--executable", executable], check=True, stdout=subprocess.DEVNULL)
    shutil.copy(os.path.join(ROOT, "CHANGELOG.md"), into + prefix + "/share/doc/godwit/")


def libraries(executable):
    """The shared libraries that the executable names."""
    found = re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", executable))
    return sorted(found)


def dependencies(executable):
    """Debian's packages of those libraries, with their lowest versions."""
    with tempfile.TemporaryDirectory() as folder:
        write(os.path.join(folder, "debian", "control"), "Source: godwit\n\nPackage: godwit\nArchitecture: any\n")
        found = run("dpkg-shlibdeps", "-O", executable, cwd=folder, stderr=subprocess.DEVNULL)
    return re.search(r"shlibs:Depends=(.*)", found).group(1)


def debian_package(executable, version, output, epoch):
    """godwit_VERSION_ARCHITECTURE.deb"""
    architecture = run("dpkg", "--print-architecture").strip()
    with tempfile.TemporaryDirectory() as folder:
        installed(executable, "/usr", folder)
        share = folder + "/usr/share"
        os.renames(share + "/zsh/site-functions/_godwit", share + "/zsh/vendor-completions/_godwit")
        for base, _, names in os.walk(share + "/man"):
            for name in names:
                compress(os.path.join(base, name))
        maintainer = run("git", "log", "-1", "--format=%an <%ae>", cwd=ROOT).strip()
        write(share + "/doc/godwit/changelog", f"godwit ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.gz.\n\n"
              f" -- {maintainer}  {email.utils.format_datetime(datetime.datetime.fromtimestamp(epoch, datetime.UTC))}\n")
        for name in ("changelog", "CHANGELOG.md"):
            compress(os.path.join(share, "doc", "godwit", name))
        shutil.copy(os.path.join(ROOT, "scripts", "packaging", "copyright"), share + "/doc/godwit/")
        os.makedirs(folder + "/etc/godwit/pipelines")
        kib = sum(os.path.getsize(os.path.join(b, n)) // 1024 + 1 for b, _, ns in os.walk(folder) for n in ns)
        write(folder + "/DEBIAN/control", f"""Package: godwit
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {kib}
Depends: {dependencies(executable)}, adduser
Recommends: curl
Suggests: graphviz, cron | systemd
Section: database
Priority: optional
Description: {DESCRIPTION}
""")
        sums = []
        for base, folders, names in os.walk(folder + "/usr"):
            folders.sort()
            for name in sorted(names):
                with open(os.path.join(base, name), "rb") as file:
                    digest = hashlib.md5(file.read(), usedforsecurity=False).hexdigest()
                sums.append(f"{digest}  {os.path.relpath(os.path.join(base, name), folder)}\n")
        write(folder + "/DEBIAN/md5sums", "".join(sums))
        write(folder + "/DEBIAN/postinst", POSTINST, 0o755)
        write(folder + "/DEBIAN/postrm", POSTRM, 0o755)
        settle_times(folder, epoch)
        path = os.path.join(output, f"godwit_{version}_{architecture}.deb")
        # One thread: how xz divides its work would show in the bytes.
        run("dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build", folder, path,
            env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch)})
    return path


def archive(executable, version, output, epoch):
    """godwit-VERSION-linux-MACHINE.tar.gz"""
    machine = os.uname().machine
    name = f"godwit-{version}-linux-{machine}"
    symbols = re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump", "-T", executable))
    glibc = "{}.{}".format(*max((int(a), int(b)) for a, b in symbols))
    own = [x for x in libraries(executable) if not re.match(r"ld-|lib(c|m|dl|pthread|gcc_s|stdc\+\+)\.", x)]
    with tempfile.TemporaryDirectory() as folder:
        installed(executable, "/usr/local", folder)
        tree = folder + "/usr/local"
        shutil.copy(os.path.join(ROOT, "LICENSE"), tree + "/share/doc/godwit/")
        write(tree + "/share/doc/godwit/README", README.format(
            version=version, machine=machine, glibc=glibc, libraries=", ".join(own), name=name))
        settle_times(tree, epoch)

        def fixed(entry):
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            entry.mtime = epoch
            return entry
        path = os.path.join(output, name + ".tar.gz")
        with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=epoch) as packed, \
                tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            tar.add(tree, name, filter=fixed)       # in the order of the names
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executable", required=True)
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as folder:
        executable = os.path.join(folder, "godwit")
        # The hash is the compiler's own, for its next build. The linker's identifier is made of that, too, and of
        # symbols, both of which may differ where the code does not.
        run("strip", "--strip-all", "--remove-section=.swift_modhash", "--remove-section=.note.gnu.build-id",
            "-o", executable, options.executable)
        version = run(executable, "--version").split("\n")[0].split()[-1]
        paths = [debian_package(executable, version, options.output, epoch),
                 archive(executable, version, options.output, epoch)]
    with open(os.path.join(options.output, "SHA256SUMS"), "w", encoding="utf-8") as sums:
        for path in paths:
            with open(path, "rb") as file:
                sums.write(f"{hashlib.sha256(file.read()).hexdigest()}  {os.path.basename(path)}\n")
            print(path)


if __name__ == "__main__":
    main()
