private import CZstd
internal import GodwitDigests
internal import GodwitDurableFiles
internal import SystemPackage

/// The file of a checkpoint while it is being written: room for the header, and one zstd frame.
final class FrameWriter {
  private let path: FilePath
  private var file: PendingFile
  private var digest = SHA256()
  private let compressor: OpaquePointer
  private let output: UnsafeMutableRawBufferPointer

  init(_ path: FilePath) throws {
    self.path = path
    file = try Self.emptyCheckpoint(for: path)
    compressor = try Self.makeCompressor(path)
    output = .allocate(byteCount: ZSTD_CStreamOutSize(), alignment: 16)
  }

  /// A file with room for the header, which is written at the end: until then it is not a checkpoint.
  private static func emptyCheckpoint(for path: FilePath) throws -> PendingFile {
    var file = try PendingFile(for: path)
    let empty = [UInt8](repeating: 0, count: Checkpoint.headerByteCount)
    try empty.withUnsafeBytes { try file.write($0) }
    return file
  }

  private static func makeCompressor(_ path: FilePath) throws -> OpaquePointer {
    guard let compressor = ZSTD_createCCtx() else {
      throw CheckpointError.compressionFailed(path, reason: "it cannot start")
    }
    do {
      for (parameter, value) in [
        (ZSTD_c_compressionLevel, Checkpoint.compressionLevel),
        (ZSTD_c_windowLog, Checkpoint.windowLog),
        (ZSTD_c_hashLog, Checkpoint.hashLog),
        (ZSTD_c_minMatch, Checkpoint.minimumMatch),
        (ZSTD_c_targetLength, Checkpoint.targetLength),
        (ZSTD_c_checksumFlag, 1),
      ] {
        try check(ZSTD_CCtx_setParameter(compressor, parameter, value), path)
      }
      return compressor
    } catch {
      ZSTD_freeCCtx(compressor)
      throw error
    }
  }

  deinit {
    ZSTD_freeCCtx(compressor)
    output.deallocate()
  }
}

extension FrameWriter {
  /// Compresses bytes; the last ones end the frame.
  func write(_ bytes: UnsafeRawBufferPointer, isEnd: Bool) throws {
    let end = isEnd ? ZSTD_e_end : ZSTD_e_continue
    var source = ZSTD_inBuffer(src: bytes.baseAddress, size: bytes.count, pos: 0)
    var isMoreToDo = true
    while isMoreToDo {
      var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
      let rest = ZSTD_compressStream2(compressor, &target, &source, end)
      try Self.check(rest, path)
      let frame = UnsafeRawBufferPointer(rebasing: output[..<target.pos])
      if !frame.isEmpty {
        digest.update(frame)
        try file.write(frame)
      }
      isMoreToDo = isEnd ? rest != 0 : source.pos < source.size
    }
  }

  /// Writes the header and gives the file its name for good.
  ///
  /// - Parameter header: Given the SHA-256 of the frame.
  func finish(_ header: ([UInt8]) -> CheckpointHeader) throws {
    try header(digest.finish()).bytes.withUnsafeBytes { try file.write($0, at: 0) }
    try file.publish()
  }

  private static func check(_ code: Int, _ path: FilePath) throws {
    if ZSTD_isError(code) != 0 {
      throw CheckpointError.compressionFailed(
        path, reason: String(cString: ZSTD_getErrorName(code)))
    }
  }
}
