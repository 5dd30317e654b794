private import CZstd
internal import GodwitDigests
internal import GodwitDurableFiles
public import SystemPackage

/// Writes one checkpoint, entry by entry, in flat memory.
///
/// The file gets its name with ``finish(summary:)``. Before that it is a temporary file, which goes
/// away with the writer. The same entries always give the same bytes.
public final class CheckpointWriter {
  public let path: FilePath
  /// Entries appended so far.
  public private(set) var entryCount: UInt64 = 0
  /// Uncompressed bytes so far, those of the entries' headers among them.
  public private(set) var byteCount: UInt64 = 0
  /// Compressed bytes written to the file so far, without the header.
  public private(set) var storedByteCount: UInt64 = 0

  private let name: CheckpointName
  private let fingerprint: [UInt8]
  private var file: PendingFile
  private var digest = SHA256()
  private let compressor: OpaquePointer
  /// Entries wait here until a piece is full: zstd is slow with small ones.
  private let input: UnsafeMutableRawBufferPointer
  private var inputCount = 0
  private let output: UnsafeMutableRawBufferPointer
  private var isFinished = false
  /// The error that left the frame incomplete. The file can then not be finished.
  private var failure: (any Error)?

  /// 256 KiB: half a window. Larger pieces are no faster.
  private static let pieceByteCount = 256 << 10

  /// - Parameters:
  ///   - name: What the file is the result of. A reader must give the same.
  ///   - fingerprint: The plan's, SHA-256. Likewise.
  /// - Throws: ``CheckpointError``, and `DurabilityError` where the file system is the reason, as
  ///   do all methods.
  public init(path: FilePath, name: CheckpointName, fingerprint: [UInt8]) throws {
    precondition(
      fingerprint.count == Checkpoint.fingerprintByteCount, "a fingerprint is a SHA-256")
    self.path = path
    self.name = name
    self.fingerprint = fingerprint
    file = try Self.emptyCheckpoint(for: path)
    compressor = try Self.makeCompressor(path)
    input = .allocate(byteCount: Self.pieceByteCount, alignment: 16)
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
    input.deallocate()
    output.deallocate()
  }
}

extension CheckpointWriter {
  /// Appends an entry. The payload is copied.
  ///
  /// - Parameter channel: Any but that of the summary.
  public func append(channel: UInt8, key: Int64, _ payload: UnsafeRawBufferPointer) throws {
    precondition(channel != Checkpoint.summaryChannel, "the summary is written by finish")
    try appendEntry(channel: channel, key: key, payload)
  }

  /// Writes the summary and gives the file its name for good.
  public func finish(summary: [UInt8]) throws {
    try summary.withUnsafeBytes {
      try appendEntry(channel: Checkpoint.summaryChannel, key: 0, $0)
    }
    isFinished = true
    try compress(UnsafeRawBufferPointer(rebasing: input[..<inputCount]), ZSTD_e_end)
    let header = CheckpointHeader(
      name: name, fingerprint: fingerprint, entryCount: entryCount, byteCount: byteCount,
      frameDigest: digest.finish())
    try header.bytes.withUnsafeBytes { try file.write($0, at: 0) }
    try file.publish()
  }

  private func appendEntry(
    channel: UInt8, key: Int64, _ payload: UnsafeRawBufferPointer
  ) throws {
    precondition(!isFinished, "a checkpoint is written once")
    if let failure { throw failure }
    guard payload.count <= Checkpoint.maximumPayloadBytes else {
      throw CheckpointError.entryTooLarge(path, bytes: payload.count)
    }
    let size = Checkpoint.entryHeaderByteCount + payload.count
    if input.count - inputCount < Checkpoint.entryHeaderByteCount { try compressInput() }
    let length = UInt32(truncatingIfNeeded: payload.count).littleEndian
    input.storeBytes(of: length, toByteOffset: inputCount, as: UInt32.self)
    input.storeBytes(of: channel, toByteOffset: inputCount + 4, as: UInt8.self)
    input.storeBytes(of: key.littleEndian, toByteOffset: inputCount + 5, as: Int64.self)
    inputCount += Checkpoint.entryHeaderByteCount
    try appendInput(payload)
    entryCount += 1
    byteCount += UInt64(size)
  }

  private func appendInput(_ bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      if inputCount == input.count { try compressInput() }
      let part = rest.prefix(input.count - inputCount)
      UnsafeMutableRawBufferPointer(rebasing: input[inputCount...])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: part))
      inputCount += part.count
      rest = rest.dropFirst(part.count)
    }
  }

  private func compressInput() throws {
    try compress(UnsafeRawBufferPointer(rebasing: input[..<inputCount]), ZSTD_e_continue)
    inputCount = 0
  }

  private func compress(_ bytes: UnsafeRawBufferPointer, _ end: ZSTD_EndDirective) throws {
    do {
      try writeFrame(of: bytes, end)
    } catch {
      failure = error
      throw error
    }
  }

  private func writeFrame(of bytes: UnsafeRawBufferPointer, _ end: ZSTD_EndDirective) throws {
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
        storedByteCount += UInt64(frame.count)
      }
      isMoreToDo = end == ZSTD_e_end ? rest != 0 : source.pos < source.size
    }
  }

  private static func check(_ code: Int, _ path: FilePath) throws {
    if ZSTD_isError(code) != 0 {
      throw CheckpointError.compressionFailed(
        path, reason: String(cString: ZSTD_getErrorName(code)))
    }
  }
}
