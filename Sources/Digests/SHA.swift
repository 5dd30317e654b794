private import CCrypto

/// SHA-256 (FIPS 180-4), in one go or piece by piece. A digest is 32 bytes.
///
/// A version hash is one; see the format of models. Computed by libcrypto, which uses the
/// processor's own instructions where there are any.
public struct SHA256: ~Copyable {
  /// Bytes in a digest.
  public static let byteCount = 32
  private let state = DigestState(EVP_sha256(), byteCount: SHA256.byteCount)

  public init() {}

  public mutating func update(_ bytes: UnsafeRawBufferPointer) { state.update(bytes) }

  public mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { state.update($0) } }

  /// The digest of all bytes since the beginning. The next byte begins a new digest.
  public mutating func finish() -> [UInt8] { state.finish() }

  public static func digest(of bytes: UnsafeRawBufferPointer) -> [UInt8] {
    var sha = SHA256()
    sha.update(bytes)
    return sha.finish()
  }

  public static func digest(of bytes: [UInt8]) -> [UInt8] {
    bytes.withUnsafeBytes { digest(of: $0) }
  }
}

/// SHA-512 (FIPS 180-4). A digest is 64 bytes.
public enum SHA512 {
  public static func digest(of bytes: [UInt8]) -> [UInt8] {
    let state = DigestState(EVP_sha512(), byteCount: 64)
    bytes.withUnsafeBytes { state.update($0) }
    return state.finish()
  }
}

/// Owns a message digest of libcrypto.
///
/// Its calls fail only when libcrypto itself is broken or the process has no memory left, which no
/// input can cause and no caller could mend: hence preconditions.
private final class DigestState {
  private let context: OpaquePointer?
  private let algorithm: OpaquePointer?
  private let byteCount: Int

  /// Without the library's own tidying up at the end of the process: threads that end just then
  /// would use what it has freed. Source: OPENSSL_init_crypto(3), OPENSSL_INIT_NO_ATEXIT.
  private static let isPrepared: Void = {
    OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
  }()

  init(_ algorithm: OpaquePointer?, byteCount: Int) {
    _ = DigestState.isPrepared
    self.algorithm = algorithm
    self.byteCount = byteCount
    context = EVP_MD_CTX_new()
    start()
  }

  deinit { EVP_MD_CTX_free(context) }

  private func start() {
    precondition(EVP_DigestInit_ex(context, algorithm, nil) == 1, "libcrypto has no such digest")
  }

  func update(_ bytes: UnsafeRawBufferPointer) {
    precondition(
      EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1, "libcrypto cannot digest")
  }

  func finish() -> [UInt8] {
    let digest = [UInt8](unsafeUninitializedCapacity: byteCount) { place, count in
      precondition(
        EVP_DigestFinal_ex(context, place.baseAddress, nil) == 1, "libcrypto cannot digest")
      count = byteCount
    }
    start()
    return digest
  }
}
