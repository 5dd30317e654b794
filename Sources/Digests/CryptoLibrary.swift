private import CCrypto

/// libcrypto, which computes the digests.
package enum CryptoLibrary {
  /// As the library that is loaded says it: `3.0.15`.
  package static var version: String { String(cString: OpenSSL_version(OPENSSL_VERSION_STRING)) }
}
