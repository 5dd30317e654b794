#!/usr/bin/env python3
"""Installs each package in a clean Debian and runs it there: trial.py DIR

Needs root, debootstrap and a Debian mirror. GODWIT_SUITE names another release than bookworm, and
GODWIT_MIRROR another mirror; GODWIT_DEBIAN names a folder with a clean system that is there already.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUITE = os.environ.get("GODWIT_SUITE", "bookworm")
MIRROR = os.environ.get("GODWIT_MIRROR", "http://deb.debian.org/debian")
APT = "export DEBIAN_FRONTEND=noninteractive; apt-get -q -y --no-install-recommends"

# Every command has to end with 0, unless `; test $? = N` says otherwise.
FIRST_STEPS = """
! command -v swift
godwit --version
godwit doctor
mkdir -p /srv/recipes/one /srv/recipes/two
godwit fixture /root/Recipes.xcdatamodeld:Recipes --rows 200 --seed 1 -o /srv/recipes/one/Recipes.sqlite
godwit fixture /root/Recipes.xcdatamodeld:Recipes --rows 900 --seed 2 --wal -o /srv/recipes/two/Recipes.sqlite
godwit inspect /srv/recipes/one/Recipes.sqlite
godwit migrate /srv/recipes/one/Recipes.sqlite --models /root/Recipes.xcdatamodeld --output /tmp/out.sqlite
godwit verify /tmp/out.sqlite
mkdir -p /etc/godwit/pipelines/recipes
cp -r /root/Recipes.xcdatamodeld /etc/godwit/pipelines/recipes/
printf 'name: recipes\\nstores: { roots: /srv/recipes }\\nmodels: Recipes.xcdatamodeld\\n' \\
  >/etc/godwit/pipelines/recipes/pipeline.yaml
godwit doctor /etc/godwit/pipelines/recipes
"""
FLEET = """
cd /tmp
P=/etc/godwit/pipelines/recipes
godwit plan $P
godwit run $P --state $STATE --json | tail -n 1 >/tmp/summary-$$
cat /tmp/summary-$$
grep -q '"migrated":2' /tmp/summary-$$
godwit status $P --state $STATE
godwit verify $P --state $STATE
godwit report $P --state $STATE --format html --output /tmp/report-$$.html
godwit rollback $P --state $STATE
godwit inspect /srv/recipes/two/Recipes.sqlite | head -n 3
"""


def inside(root, script):
    """Runs a shell script in the clean system; its mounts end with it."""
    # The root is a mount of its own, so that its file system is known inside.
    command = ('mount --bind "$0" "$0" && cd "$0" && mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && '
               'exec chroot "$0" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 '
               'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -exc "$1"')
    subprocess.run(["unshare", "--mount", "sh", "-c", command, root, script], check=True, stdin=subprocess.DEVNULL)


def clean(base, into):
    """A copy of the clean system, with the models of the example."""
    subprocess.run(["cp", "-a", base, into], check=True)
    shutil.copytree(os.path.join(ROOT, "Fixtures", "Recipes.xcdatamodeld"), into + "/root/Recipes.xcdatamodeld")
    return into


def debian_package(root, path):
    """The .deb: declared dependencies suffice, and the service's user can run a pipeline."""
    shutil.copy(path, root + "/root/godwit.deb")
    inside(root, f"{APT} install /root/godwit.deb\n" + FIRST_STEPS)
    inside(root, "chown -R godwit: /srv/recipes\ninstall -d -o godwit -m 0700 /var/lib/godwit/recipes\n"
                 "cat >/tmp/steps <<'END'\n" + FLEET + "END\n"
                 "STATE=/var/lib/godwit/recipes setpriv --reuid=godwit --regid=godwit --clear-groups sh -ex /tmp/steps")
    inside(root, f"""{APT} install systemd man-db bash zsh fish
systemd-analyze verify godwit@recipes.service godwit@recipes.timer
man -w godwit-run && man godwit-run | head -n 5
dpkg --verify godwit
bash -n /usr/share/bash-completion/completions/godwit
zsh -n /usr/share/zsh/vendor-completions/_godwit
fish -n /usr/share/fish/vendor_completions.d/godwit.fish
{APT} remove godwit
! command -v godwit
test -e /etc/godwit/pipelines/recipes/pipeline.yaml""")


def archive(root, path):
    """The archive: unpacked below /usr/local, with the libraries that its README names."""
    name = os.path.basename(path)
    shutil.copy(path, root + "/root/")
    inside(root, f"{APT} install libsqlite3-0 libzstd1 zlib1g libssl3\ncd /root\ntar -xzf {name}\n"
                 f"cp -a {name.removesuffix('.tar.gz')}/. /usr/local/\n" + FIRST_STEPS
                 + "export STATE=/tmp/state\n" + FLEET)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if os.geteuid() or not shutil.which("debootstrap"):
        print("packages: skipped, since this needs root and debootstrap")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="godwit-packages-") as folder:
        base = os.path.join(folder, "base")
        if os.environ.get("GODWIT_DEBIAN"):
            subprocess.run(["cp", "-a", os.environ["GODWIT_DEBIAN"], base], check=True)
        else:
            print(f"debootstrap {SUITE} …", flush=True)
            subprocess.run(["debootstrap", "--variant=minbase", SUITE, base, MIRROR], check=True,
                           stdout=subprocess.DEVNULL)
        if os.path.exists("/etc/resolv.conf"):
            shutil.copy("/etc/resolv.conf", base + "/etc/resolv.conf")
        inside(base, f"{APT} update")
        for pattern, trial in (("*.deb", debian_package), ("*.tar.gz", archive)):
            paths = glob.glob(os.path.join(sys.argv[1], pattern))
            if len(paths) != 1:
                sys.exit(f"{sys.argv[1]} has {len(paths)} files {pattern}; 1 is needed")
            root = os.path.join(folder, trial.__name__)
            trial(clean(base, root), os.path.abspath(paths[0]))
            print(f"{os.path.basename(paths[0])}: installed and run on a clean Debian {SUITE}", flush=True)


if __name__ == "__main__":
    main()
