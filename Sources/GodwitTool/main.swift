import Godwit
