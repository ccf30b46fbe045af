// How a reduction's frames leave a rank: implemented by each transport on the host.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <dtrain/comm/mesh.hpp>

#include "frames.hpp"

namespace dtrain::comm {

struct Outgoing {
  FrameHeader header;
  const std::byte* bytes = nullptr;  // header.bytes of them; must stay until they are gone
  std::vector<std::byte> owned{};    // where `bytes` point, unless others own them
};

class Wire {
 public:
  virtual ~Wire() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual const std::string& name_of(int peer) const = 0;  // for messages
  virtual void send(int peer, Outgoing frame) = 0;         // queues it
  virtual void give_back(int peer) = 0;                    // once for each frame that an operation borrowed
  virtual void reach(CommPoint point) const = 0;
};

}  // namespace dtrain::comm
