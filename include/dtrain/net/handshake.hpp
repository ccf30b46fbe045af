// Mutual proof of a shared secret over a blocking socket (HMAC-SHA256 over both sides' nonces, the role and a context
// string), used by every port that dtrain opens. The secret never travels; a recorded proof is worth nothing.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace dtrain::net {

enum class Role { connected, accepted };

// `hello` is what this side says of itself (public, <= 4 KiB, covered by the proof). Returns the peer's hello. Throws
// RemoteError: no proof, the wrong one, or none within the deadline. The caller closes the socket then.
std::string prove_and_verify(int socket, Role role, std::string_view secret, std::string_view hello,
                             std::chrono::milliseconds deadline);

}  // namespace dtrain::net
