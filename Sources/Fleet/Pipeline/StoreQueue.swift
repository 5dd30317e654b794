import SystemPackage

/// Which store of a run begins next: a few at a time, wave by wave.
///
/// Stores smaller than a shard are done in one process each, three for each worker at a time: while
/// one waits for the disk and one for its line in the progress file, another has the processor. Large ones go beside them and share the
/// workers, so that neither kind waits for the other. Of stores that are names of one file, one is under way at a
/// time: the file is open in its process, which to that of another is an application.
struct StoreQueue {
  /// How many small stores there are at a time for each worker.
  static let smallStoresPerWorker = 3
  /// Worker processes of all stores together. Fewer take effect as stores come to their end.
  var workerCount: Int
  /// The wave under way, from 0.
  private(set) var wave = 0
  let waveSizes: [Int]
  private var later: ArraySlice<[FoundStore]>
  private var small: ArraySlice<FoundStore> = []
  private var large: ArraySlice<FoundStore> = []
  /// Stores that are tried again, and from when on, in seconds.
  private var waiting: [(store: FoundStore, time: Double)] = []
  private var taken: [FilePath: (workers: Int, inode: FoundStore.Inode?)] = [:]
  /// Of those: how many are done in one process, and the workers of the others.
  private var (smallTaken, workersTaken) = (0, 0)
  /// The files of those.
  private var inodes: Set<FoundStore.Inode> = []
  /// Stores whose turn came while another name of their file was under way. One of each file has its turn again
  /// whenever such a store ends.
  private var held: [FoundStore.Inode: [FoundStore]] = [:]
  private let need: (FoundStore) -> Int

  /// - Parameter need: How many workers a store has use for; 0 for one that is done in one process.
  init(waves: [[FoundStore]], workerCount: Int, need: @escaping (FoundStore) -> Int) {
    self.workerCount = workerCount
    self.need = need
    waveSizes = waves.map(\.count)
    later = waves[...]
    fill(later.popFirst() ?? [])
  }

  private mutating func fill(_ stores: [FoundStore]) {
    small = stores.filter { need($0) == 0 }[...]
    large = stores.filter { need($0) > 0 }[...]
  }

  /// The next store and how many workers it may have; nil where none may begin now.
  mutating func next(at time: Double) -> (store: FoundStore, workers: Int)? {
    while let place = waiting.firstIndex(where: { $0.time <= time }) {
      let store = waiting.remove(at: place).store
      if need(store) == 0 { small.insert(store, at: small.startIndex) } else { large.append(store) }
    }
    while smallTaken < Self.smallStoresPerWorker * workerCount, let store = small.popFirst() {
      guard take(store, workers: 0) else { continue }
      smallTaken += 1
      return (store, 0)
    }
    while let store = large.first {
      let workers = min(need(store), workerCount)
      guard workers <= workerCount - workersTaken else { return nil }
      large.removeFirst()
      guard take(store, workers: workers) else { continue }
      workersTaken += workers
      return (store, workers)
    }
    return nil
  }

  /// - Returns: False where another name of its file is under way: the store is held until that ends.
  private mutating func take(_ store: FoundStore, workers: Int) -> Bool {
    if let inode = store.inode, !inodes.insert(inode).inserted {
      held[inode, default: []].append(store)
      return false
    }
    taken[store.path] = (workers, store.inode)
    return true
  }

  /// A store has come to its end, and gives back what it had.
  mutating func end(_ store: FoundStore) {
    guard let (workers, inode) = taken.removeValue(forKey: store.path) else { return }
    if workers == 0 { smallTaken -= 1 } else { workersTaken -= workers }
    guard let inode else { return }
    inodes.remove(inode)
    guard let next = held[inode]?.popLast() else { return }
    if held[inode]?.isEmpty == true { held[inode] = nil }
    if need(next) == 0 { small.append(next) } else { large.append(next) }
  }

  /// A store is tried again from a time on, in seconds. Its wave waits for it.
  mutating func putBack(_ store: FoundStore, until time: Double) {
    end(store)
    waiting.append((store, time))
  }

  /// Nothing of the wave is left, under way or waiting. Of what is held, another name is one of those.
  var isWaveOver: Bool { small.isEmpty && large.isEmpty && waiting.isEmpty && taken.isEmpty }

  /// - Returns: False where there is no further wave.
  mutating func beginNextWave() -> Bool {
    guard let stores = later.popFirst() else { return false }
    wave += 1
    fill(stores)
    return true
  }

  var waitingCount: Int { waiting.count }

  /// Stores that have not begun, or that wait to be tried again.
  var left: [FoundStore] {
    small + large + held.values.flatMap { $0 } + waiting.map(\.store) + later.flatMap { $0 }
  }
}
