import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// Binary values whose attribute begins or ceases to allow external storage.
///
/// With external storage allowed a value begins with a marker: 0x01 and the data, or 0x02, a file
/// name of 36 characters and a zero byte. Source: `core-data-sqlite-format.md` §5.1.
struct ExternalData {
  /// The source store's `_EXTERNAL_DATA`.
  let folder: String

  static let mostBytes = StoreFiles.mostExternalBytes

  /// Fills the places that the row loop left to be settled.
  func settle(
    _ operations: UnsafeMutableBufferPointer<AttributeOperation>,
    from source: UnsafeMutablePointer<RawValue>, to output: UnsafeMutablePointer<RawValue>,
    scratch: inout RawBuffer, newFiles: NewExternalFiles, entity: String, primaryKey: Int64
  ) throws {
    // Values are laid out first and pointed to afterwards: the buffer may move while it grows.
    var extents: [(place: Int, offset: Int, count: Int)] = []
    var read = 0
    for place in 0..<operations.count {
      let operation = operations[place]
      switch operation.code {
      case .markedInline, .unmarked, .refiled: break
      case .constant, .source, .sourceOr, .converted: continue
      }
      let value = source[Int(operation.source)]
      guard value.kind == .blob else {
        output[place] = value.kind == .null ? operation.value : value
        continue
      }
      // Without a marker it is damaged, and carried as found where that is accepted.
      let marker = RowRules.marker(of: value.buffer)
      let offset = scratch.count
      if operation.code == .refiled {
        guard marker == .file else {
          output[place] = value
          continue
        }
        let name = try newFiles.copy(
          try path(of: value, entity: entity, primaryKey: primaryKey), entity: entity,
          primaryKey: primaryKey, place: place)
        scratch.append([2] + Array(name.utf8) + [0])
      } else if operation.code == .markedInline, value.count > NewExternalFiles.mostInlineBytes {
        let name = try newFiles.write(
          value.buffer, entity: entity, primaryKey: primaryKey, place: place)
        scratch.append([2] + Array(name.utf8) + [0])
      } else if operation.code == .markedInline {
        scratch.append(1 as UInt8)
        scratch.append(value.buffer)
      } else if marker == .file {
        let bytes = try file(named: value, entity: entity, primaryKey: primaryKey, besides: read)
        read += bytes.count
        scratch.append(bytes)
      } else if marker == .inline {
        scratch.append(UnsafeRawBufferPointer(rebasing: value.buffer.dropFirst()))
      } else {
        output[place] = value
        continue
      }
      extents.append((place, offset, scratch.count - offset))
    }
    for extent in extents {
      output[extent.place] = .blob(
        UnsafeRawPointer(scratch.base + extent.offset), count: extent.count)
    }
  }

  private func path(of value: RawValue, entity: String, primaryKey: Int64) throws -> String {
    guard let name = Self.fileName(value.buffer) else {
      throw StageError.externalData(
        entity: entity, primaryKey: primaryKey, reason: "the reference is not a file name")
    }
    return folder + "/" + name
  }

  /// - Parameter read: The bytes of the row's other files, which the limit is for, too: files of some blocks may
  ///   be as large as they like.
  func file(
    named value: RawValue, entity: String, primaryKey: Int64, besides read: Int = 0
  ) throws -> [UInt8] {
    let path = try path(of: value, entity: entity, primaryKey: primaryKey)
    do {
      return try RegularFile.bytes(of: FilePath(path), limit: Self.mostBytes - read)
    } catch let error as DurabilityError {
      guard let reason = Self.reason(error) else { throw error }
      throw StageError.externalData(entity: entity, primaryKey: primaryKey, reason: reason)
    }
  }

  /// What is wrong with the file of a row; nil where it is the machine that failed.
  static func reason(_ error: DurabilityError) -> String? {
    switch error {
    case .notRegular(let path, let kind): "\(path.lastComponent?.string ?? "") is \(kind)"
    case .symbolicLink(let path): "\(path.lastComponent?.string ?? "") is a symbolic link"
    case .tooLarge:
      "the row's files have more than \(mostBytes) bytes, the most that a row can hold"
    default: error.isNotFound ? "the file is missing" : nil
    }
  }

  /// The name in a reference, when it is the text of a UUID: nothing else may become a path.
  static func fileName(_ reference: UnsafeRawBufferPointer) -> String? {
    guard reference.first == 2, RowRules.isFileName(reference) else { return nil }
    return String(decoding: reference[1..<37], as: UTF8.self)
  }
}
