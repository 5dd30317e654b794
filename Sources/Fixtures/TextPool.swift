/// Words to cut strings from, and bytes to cut binary values from: no value is built or copied.
///
/// A string begins at the start of a word. It ends at the last boundary of a word, or of a
/// character in ASCII, that its length allows: never inside a character.
final class TextPool {
  private static let size = 1 << 16

  let text: UnsafeMutableRawBufferPointer
  /// The last place, at or before each offset, at which a string may end.
  private let ends: UnsafeMutableBufferPointer<UInt32>
  private let starts: [Int]

  init(unicode: Bool, seed: UInt64) {
    var random = SplitMix64(seed: SplitMix64.seed(seed, "text"))
    let words = unicode ? Self.plainWords + Self.worldWords : Self.plainWords
    text = .allocate(byteCount: Self.size, alignment: 1)
    ends = .allocate(capacity: Self.size + 1)
    var starts: [Int] = []
    var place = 0
    ends.initialize(repeating: 0)
    while true {
      let word = Array(words[random.below(words.count)].utf8) + [UInt8(ascii: " ")]
      guard place + word.count <= Self.size else { break }
      starts.append(place)
      for (index, byte) in word.enumerated() {
        text[place + index] = byte
        ends[place + index + 1] = UInt32(unicode ? place : place + index + 1)
      }
      ends[place + word.count - 1] = UInt32(place + word.count - 1)
      ends[place + word.count] = UInt32(place + word.count - 1)
      if !unicode { ends[place + word.count] = UInt32(place + word.count) }
      place += word.count
    }
    for rest in place..<Self.size { text[rest] = UInt8(ascii: ".") }
    self.starts = starts
  }

  deinit {
    text.deallocate()
    ends.deallocate()
  }

  /// A string of at most `bytes` bytes; shorter where a character or the pool ends.
  @inline(__always)
  func string(bytes: Int, _ random: inout SplitMix64) -> UnsafeRawBufferPointer {
    let start = starts[random.below(starts.count)]
    let bound = min(start + bytes, Self.size)
    let end = max(start, Int(ends[bound]))
    return UnsafeRawBufferPointer(rebasing: text[start..<end])
  }

  private static let plainWords = [
    "salt", "pepper", "butter", "flour", "whisk", "simmer", "until", "golden", "and", "the", "a",
    "cup", "of", "slowly", "lemon", "basil", "fold", "rest", "oven", "crisp", "season", "taste",
    "serve", "warm", "thyme", "garlic", "onion", "stir", "twice", "pan", "O'Brien", "\"quoted\"",
    "100%", "semi;colon", "a,b", "line\nbreak", "tab\there", "back\\slash",
  ]

  /// Every number of UTF-8 bytes a character may have, both directions of writing, letters with
  /// separate accents, emoji of several scalars.
  private static let worldWords = [
    "Crème", "brûlée", "jalapen\u{303}o", "Käsespätzle", "smørrebrød", "żurek", "борщ", "пельмени",
    "μουσακάς", "חומוס", "فلافل", "पनीर", "แกงเขียวหวาน", "麻婆豆腐", "寿司", "ラーメン", "김치찌개",
    "phở", "𝔤𝔬𝔲𝔩𝔞𝔰𝔥", "🍲", "👩‍🍳", "🇮🇹", "é", "e\u{301}", "ﬁlet", "Å", "\u{1F96E}", "½",
  ]
}

/// Room for the values of one row. Pointers stay valid until ``reset()``.
final class RowArena {
  private static let chunkBytes = 1 << 18
  private let first = UnsafeMutableRawPointer.allocate(byteCount: chunkBytes, alignment: 16)
  private var used = 0
  private var extra: [UnsafeMutableRawPointer] = []

  @inline(__always)
  func allocate(_ bytes: Int) -> UnsafeMutableRawPointer {
    if used + bytes <= Self.chunkBytes {
      defer { used += bytes }
      return first + used
    }
    let chunk = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 16)
    extra.append(chunk)
    return chunk
  }

  @inline(__always)
  func reset() {
    used = 0
    guard !extra.isEmpty else { return }
    for chunk in extra { chunk.deallocate() }
    extra.removeAll()
  }

  deinit {
    reset()
    first.deallocate()
  }
}
