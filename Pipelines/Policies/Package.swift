// swift-tools-version: 6.2
import PackageDescription

/// How a team's own package looks: one executable, which is `godwit` with the team's policies.
let package = Package(
  name: "library-migrator",
  dependencies: [
    // A team writes: .package(url: "…/godwit", from: "0.1.0")
    .package(name: "godwit", path: "../..")
  ],
  targets: [
    .executableTarget(
      name: "LibraryMigrator", dependencies: [.product(name: "Godwit", package: "godwit")])
  ]
)
