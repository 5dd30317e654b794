import Synchronization

/// A value that is computed when it is first asked for, and shared by all copies of what holds it.
package final class Memo<Value: Sendable>: Sendable {
  private let known = Mutex<Value?>(nil)

  package init() {}

  package func value(_ make: () throws -> Value) rethrows -> Value {
    if let value = known.withLock({ $0 }) { return value }
    // Outside the lock: two threads may make the same value.
    let made = try make()
    known.withLock { $0 = made }
    return made
  }
}

/// The last few results of something that depends on its input alone.
package final class RecentResults<Input: Equatable & Sendable, Output: Sendable>: Sendable {
  private let known = Mutex<[(input: Input, output: Output)]>([])
  private let limit: Int

  package init(limit: Int) { self.limit = limit }

  package func output(for input: Input, _ make: () throws -> Output) rethrows -> Output {
    let found = known.withLock { known in known.first { $0.input == input }?.output }
    if let found { return found }
    let made = try make()
    known.withLock { known in
      if known.count == limit { known.removeFirst() }
      known.append((input, made))
    }
    return made
  }
}
