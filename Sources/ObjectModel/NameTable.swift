/// Finds the place of a name in a list, by its Unicode scalars.
///
/// What a dictionary of texts does, for loops over rows: there hashing the normal form of a key costs more
/// than all else that is done with it.
package final class NameTable {
  private let names: [String]
  /// Open addressing: places in `names`, −1 for a slot that is free.
  private let slots: UnsafeMutableBufferPointer<Int32>
  private let mask: Int

  /// - Parameter names: Of a name that occurs twice the first place is found.
  package init(_ names: [String]) {
    self.names = names
    var size = 8
    while size < names.count * 2 { size *= 2 }
    mask = size - 1
    slots = .allocate(capacity: size)
    slots.initialize(repeating: -1)
    for (place, name) in names.enumerated() {
      let slot = slot(of: name)
      if slots[slot] < 0 { slots[slot] = Int32(place) }
    }
  }

  deinit { slots.deallocate() }

  package subscript(name: String) -> Int? {
    let place = slots[slot(of: name)]
    return place < 0 ? nil : Int(place)
  }

  /// The slot that has the name, or that it would have.
  private func slot(of name: String) -> Int {
    var slot = Int(truncatingIfNeeded: name.scalarHash &>> 32) & mask
    while slots[slot] >= 0, !names[Int(slots[slot])].isSameName(as: name) {
      slot = (slot + 1) & mask
    }
    return slot
  }
}

extension String {
  /// Of a few bits' worth: for tables that compare names themselves.
  fileprivate var scalarHash: UInt64 {
    func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt64 {
      var (hash, word) = (UInt64(truncatingIfNeeded: bytes.count), UInt64(0))
      for (place, byte) in bytes.enumerated() {
        word = word &<< 8 | UInt64(byte)
        if place & 7 == 7 { hash = (hash ^ word) &* 0x9E37_79B9_7F4A_7C15 }
      }
      return (hash ^ word) &* 0x9E37_79B9_7F4A_7C15
    }
    return utf8.withContiguousStorageIfAvailable(hash) ?? Array(utf8).withUnsafeBufferPointer(hash)
  }
}
