"""What processes do to a folder, call by call, out of an strace log: writes, syncs and changes of names.

The folder is modelled as inodes and folders. `Disk` applies operations; `record` runs a command under
strace and gives the operations in their order, and proves them: applied to what was there before, they
must give what is there afterwards, byte for byte.
"""
import codecs
import dataclasses
import os
import re
import subprocess

CALLS = ("open,openat,openat2,creat,write,pwrite64,writev,pwritev,pwritev2,ftruncate,truncate,fallocate,fsync,fdatasync,"
         "rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,symlink,symlinkat,"
         "copy_file_range,ioctl,lseek,newfstatat,lstat,stat,fstat,statx")
LINE = re.compile(r"^(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)$", re.S)
DONE = re.compile(r"^(.*)\)\s*= (-?\d+)(?:<([^>]*)>)?.*$", re.S)
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
HANDLE = re.compile(r"(?:^|, )(AT_FDCWD|\d+)<([^>]*)>")
ROOT = 0


@dataclasses.dataclass
class Operation:
    """One change. `kind` is write, truncate, name, unname, sync or syncfolder."""
    kind: str
    inode: int = -1
    folder: int = -1
    name: str = ""
    offset: int = 0
    data: bytes = b""
    # Of a rename: the name that goes, and of an exchange the inode that comes there.
    old: tuple | None = None
    path: str = ""


class Disk:
    """Inodes: bytes of a file, or the names in a folder."""

    def __init__(self):
        self.files, self.folders, self.modes, self.times = {}, {ROOT: {}}, {}, {}

    def copy(self):
        other = Disk()
        other.files = {n: bytearray(b) for n, b in self.files.items()}
        other.folders = {n: dict(f) for n, f in self.folders.items()}
        other.modes, other.times = dict(self.modes), dict(self.times)
        return other

    def apply(self, op):
        if op.kind == "write":
            data = self.files[op.inode]
            if len(data) < op.offset:
                data.extend(bytes(op.offset - len(data)))
            data[op.offset:op.offset + len(op.data)] = op.data
        elif op.kind == "truncate":
            data = self.files[op.inode]
            del data[op.offset:]
            data.extend(bytes(op.offset - len(data)))
        elif op.kind == "name":
            self.folders[op.folder][op.name] = op.inode
            if op.old:
                folder, name, comes = op.old
                if comes is not None:
                    self.folders[folder][name] = comes
                elif self.folders[folder].get(name) == op.inode:
                    del self.folders[folder][name]
        elif op.kind == "unname" and self.folders[op.folder].get(op.name) == op.inode:
            del self.folders[op.folder][op.name]

    def find(self, parts):
        """(inode, folder of the last part); None where a part is missing."""
        inode, folder = ROOT, None
        for part in parts:
            folder = inode
            inode = self.folders.get(folder, {}).get(part)
            if inode is None:
                return None, folder
        return inode, folder

    def tree(self, inode=ROOT, at=""):
        """{path: inode} of everything that has a name."""
        found = {}
        for name, child in self.folders[inode].items():
            path = f"{at}/{name}" if at else name
            found[path] = child
            if child in self.folders:
                found |= self.tree(child, path)
        return found

    @classmethod
    def of(cls, root):
        """What is in a folder now, and the table of real inode numbers."""
        disk, real = cls(), {}
        for base, folders, names in os.walk(root):
            here = disk.find([p for p in os.path.relpath(base, root).split("/") if p != "."])[0]
            for name in sorted(folders) + sorted(names):
                info = os.lstat(os.path.join(base, name))
                inode = real.setdefault(info.st_ino, len(real) + 1)
                disk.folders[here][name] = inode
                disk.modes[inode], disk.times[inode] = info.st_mode & 0o7777, info.st_mtime_ns
                if name in folders:
                    disk.folders[inode] = {}
                else:
                    with open(os.path.join(base, name), "rb") as file:
                        disk.files[inode] = bytearray(file.read())
        return disk, real


class Reader:
    """Turns calls into operations on a model of the folder."""

    def __init__(self, root):
        self.root = root
        self.before, real = Disk.of(root)
        self.disk = self.before.copy()
        self.operations, self.positions = [], {}
        # Real inode numbers, as the program sees them, to the model's: the kernel gives the number of
        # a file that is gone to the next one.
        self.real, self.next = {number: [inode] for number, inode in real.items()}, len(real) + 1

    def parts(self, path):
        path = os.path.normpath(path)
        if path != self.root and not path.startswith(self.root + "/"):
            return None
        return [p for p in os.path.relpath(path, self.root).split("/") if p != "."]

    def emit(self, kind, **more):
        op = Operation(kind, **more)
        self.disk.apply(op)
        self.operations.append(op)

    def new(self, parts, is_folder=False):
        _, folder = self.disk.find(parts)
        inode, self.next = self.next, self.next + 1
        (self.disk.folders if is_folder else self.disk.files)[inode] = {} if is_folder else bytearray()
        self.disk.modes[inode] = 0o700 if is_folder else 0o600
        # The inode is there from the start, without a name, so that any part of the log can be applied.
        (self.before.folders if is_folder else self.before.files)[inode] = {} if is_folder else bytearray()
        self.before.modes[inode] = self.disk.modes[inode]
        self.emit("name", inode=inode, folder=folder, name=parts[-1], path="/".join(parts))
        return inode

    def inode(self, path):
        parts = self.parts(path)
        return None if parts is None else self.disk.find(parts)[0]

    def take(self, call, arguments, result, returned):
        if result < 0:
            return
        texts = [codecs.escape_decode(t.encode("latin-1"))[0] for t in TEXT.findall(arguments)]
        handles = HANDLE.findall(TEXT.sub('""', arguments))
        if call in ("newfstatat", "lstat", "stat", "fstat", "statx"):
            return self.look(arguments, texts, handles)
        if call in ("open", "openat", "openat2", "creat"):
            return self.opened(arguments, self.place(texts[0], handles), result)
        if call in ("write", "pwrite64", "ftruncate", "truncate", "fallocate", "fsync", "fdatasync", "lseek",
                    "copy_file_range", "ioctl", "writev", "pwritev", "pwritev2"):
            return self.data(call, arguments, texts, handles, result)
        self.names(call, arguments, [t.decode(errors="surrogateescape") for t in texts], handles)

    @staticmethod
    def place(text, handles):
        text = text.decode(errors="surrogateescape") if isinstance(text, bytes) else text
        return os.path.join(handles[0][1], text) if handles else text

    def look(self, arguments, texts, handles):
        number = re.search(r"(?:st_ino|stx_ino)=(\d+)", arguments)
        if not number or not (texts or handles):
            return
        inode = self.inode(self.place(texts[0], handles) if texts and texts[0] else handles[0][1])
        known = self.real.setdefault(int(number.group(1)), [])
        if inode is not None and inode not in known:
            known.append(inode)

    def opened(self, arguments, path, fd):
        parts = self.parts(path)
        if not parts:
            return
        inode = self.disk.find(parts)[0]
        if inode is None and "O_CREAT" in arguments:
            inode = self.new(parts)
        if inode not in self.disk.files:
            return
        if "O_TRUNC" in arguments and self.disk.files[inode]:
            self.emit("truncate", inode=inode, offset=0, path=path)
        self.positions[fd, path] = None if "O_APPEND" in arguments else 0

    def data(self, call, arguments, texts, handles, result):
        if not handles:
            return
        fd, path = int(handles[0][0]), handles[0][1]
        if call in ("copy_file_range", "ioctl"):
            return self.copied(call, arguments, handles, result)
        inode = self.inode(path)
        if inode is None:
            return
        if call in ("fsync", "fdatasync"):
            return self.emit("syncfolder" if inode in self.disk.folders else "sync", inode=inode, folder=inode, path=path)
        if inode not in self.disk.files or path.endswith("-shm"):
            return
        numbers = [int(n) for n in re.findall(r", (\d+)(?=,|$)", TEXT.sub("", arguments))]
        if call == "write":
            at = self.positions.get((fd, path), 0)
            at = len(self.disk.files[inode]) if at is None else at
            self.emit("write", inode=inode, offset=at, data=texts[0][:result], path=path)
            if self.positions.get((fd, path), 0) is not None:
                self.positions[fd, path] = at + result
        elif call == "pwrite64":
            self.emit("write", inode=inode, offset=numbers[-1], data=texts[0][:result], path=path)
        elif call in ("ftruncate", "truncate"):
            self.emit("truncate", inode=inode, offset=numbers[-1], path=path)
        elif call == "fallocate" and len(self.disk.files[inode]) < sum(numbers[-2:]):
            self.emit("truncate", inode=inode, offset=sum(numbers[-2:]), path=path)
        elif call == "lseek":
            self.positions[fd, path] = result
        elif call.startswith(("writev", "pwritev")):
            raise ValueError(f"{call} is not modelled")

    def copied(self, call, arguments, handles, result):
        if call == "ioctl":
            if "FICLONE" in arguments:
                source, target = self.inode(handles[1][1]), self.inode(handles[0][1])
                self.emit("write", inode=target, data=bytes(self.disk.files[source]), path=handles[0][1])
            return
        source, target = self.inode(handles[0][1]), self.inode(handles[1][1])
        if target is None or not result:
            return
        # strace shows the offsets as they were before the call.
        start, at = (int(n) for n in re.findall(r"\[(\d+)\]", arguments))
        self.emit("write", inode=target, offset=at, data=bytes(self.disk.files[source][start:start + result]),
                  path=handles[1][1])

    def names(self, call, arguments, texts, handles):
        paths = [os.path.join(handles[n][1], t) if n < len(handles) else t for n, t in enumerate(texts)]
        parts = [self.parts(p) for p in paths]
        if call.startswith("mkdir") and parts[0]:
            self.new(parts[0], is_folder=True)
        elif call.startswith(("unlink", "rmdir")) and parts[0]:
            inode, folder = self.disk.find(parts[0])
            if inode is not None:
                self.emit("unname", inode=inode, folder=folder, name=parts[0][-1], path=paths[0])
        elif call.startswith("link") and parts[1]:
            inode, _ = self.disk.find(parts[0])
            self.emit("name", inode=inode, folder=self.disk.find(parts[1])[1], name=parts[1][-1], path=paths[1])
        elif call.startswith("rename") and parts[0] and parts[1]:
            inode, folder = self.disk.find(parts[0])
            other, to = self.disk.find(parts[1])
            comes = other if "RENAME_EXCHANGE" in arguments else None
            self.emit("name", inode=inode, folder=to, name=parts[1][-1], old=(folder, parts[0][-1], comes),
                      path=paths[1])
        elif call.startswith("symlink"):
            raise ValueError("a symbolic link was made")


def calls(log):
    """(call, arguments, result, path of what was opened), those that were interrupted put together."""
    waiting = {}
    with open(log, encoding="latin-1", newline="\n") as file:
        for line in file:
            match = LINE.match(line.rstrip("\n"))
            if not match:
                continue
            pid, resumed, call, rest = match.groups()
            if resumed:
                rest, call = waiting.pop(pid, "") + rest, resumed
            if rest.endswith("<unfinished ...>"):
                waiting[pid] = rest[:-len("<unfinished ...>")].rstrip()
                continue
            done = DONE.match(rest)
            if done:
                yield call, done.group(1), int(done.group(2)), done.group(3)


def record(command, root, log, env=None):
    """(what was there before, operations, table of inode numbers, what the command said)."""
    reader = Reader(os.path.realpath(root))
    done = subprocess.run(["strace", "-f", "-qq", "-y", "-v", "-s", str(1 << 23), "-e", "trace=" + CALLS, "-e", "signal=none",
                           "-o", log, *command], stdin=subprocess.DEVNULL, capture_output=True, env=env)
    for call in calls(log):
        reader.take(*call)
    prove(reader, root)
    return reader, done


def prove(reader, root):
    """The model must be the folder, or what follows says nothing."""
    found, _ = Disk.of(root)
    names, real = reader.disk.tree(), found.tree()
    if set(names) != set(real):
        raise ValueError(f"the log does not give the folder: {sorted(set(names) ^ set(real))[:5]}")
    for path, inode in names.items():
        if inode in reader.disk.files and not path.endswith("-shm"):
            if reader.disk.files[inode] != found.files[real[path]]:
                raise ValueError(f"the log does not give the bytes of {path}")
