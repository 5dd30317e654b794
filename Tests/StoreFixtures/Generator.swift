// The generator is part of the product: `godwit fixture`.
@_exported import GodwitFixtures
