import GodwitDigests
import Testing

@Suite struct `SHA-2` {
  // FIPS 180-4 examples; one million "a" from the same.
  @Test(arguments: [
    (
      text: "",
      digest: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    ),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
    (
      String(repeating: "a", count: 1_000_000),
      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
    ),
  ])
  func `256 gives the standard's digests`(text: String, digest: String) {
    #expect(Hexadecimal.text(of: SHA256.digest(of: Array(text.utf8))) == digest)
  }

  @Test func `512 gives the standard's digest`() {
    #expect(
      Hexadecimal.text(of: SHA512.digest(of: Array("abc".utf8)))
        == "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
        + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f")
  }

  @Test func `does not depend on the pieces`() {
    let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    for size in [1, 63, 64, 65, 999, 1000] {
      var sha256 = SHA256()
      for start in stride(from: 0, to: bytes.count, by: size) {
        let piece = Array(bytes[start..<min(start + size, bytes.count)])
        sha256.update(piece)
      }
      #expect(sha256.finish() == SHA256.digest(of: bytes))
    }
  }

  @Test func `begins anew after each digest`() {
    var sha = SHA256()
    sha.update([1])
    _ = sha.finish()
    sha.update([2])
    #expect(sha.finish() == SHA256.digest(of: [2]))
    #expect(sha.finish() == SHA256.digest(of: []))
  }
}

@Suite struct `Hexadecimal text` {
  @Test func `goes both ways`() {
    let bytes = (0...255).map { UInt8($0) }
    #expect(Hexadecimal.bytes(of: Hexadecimal.text(of: bytes)) == bytes)
    #expect(Hexadecimal.text(of: [0x0A, 0xF0]) == "0af0")
    #expect(Hexadecimal.bytes(of: "0AF0") == [0x0A, 0xF0])
  }

  @Test(arguments: ["0", "0g", "0x", " 0", "+1", "é"]) func `is refused when odd`(text: String) {
    #expect(Hexadecimal.bytes(of: text) == nil)
  }
}
