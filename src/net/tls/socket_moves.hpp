// Reads and writes of a socket that never block.
#pragma once

#include <dtrain/net/stream.hpp>

namespace dtrain::net {

// `blocked` also when fewer bytes came than the parts have room for.
Moved read_from(int socket, std::span<const iovec> parts);
Moved write_to(int socket, std::span<const iovec> parts);

}  // namespace dtrain::net
