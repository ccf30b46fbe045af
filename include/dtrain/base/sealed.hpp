// Encryption of a short secret for a receiver that shares none with the sender yet: X25519 agrees on a key, AES-256-GCM
// hides the secret. It protects against eavesdropping, not against a man in the middle: the two sides must authenticate
// each other by other means.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace dtrain {

// One side's half of one exchange; used once.
class KeyHalf {
 public:
  KeyHalf();
  ~KeyHalf();
  KeyHalf(const KeyHalf&) = delete;
  std::string public_part() const;  // lower-case hex
  // Both throw DataError for what is no public part, or was not sealed for this one.
  std::string seal(std::string_view secret, const std::string& others_public_part) const;  // lower-case hex
  std::string open(const std::string& sealed, const std::string& others_public_part) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain
