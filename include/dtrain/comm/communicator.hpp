// What the ranks of one generation do together. A communicator that threw PeerLost is dead: make a new one.
#pragma once

#include <memory>
#include <vector>

#include <dtrain/comm/tree.hpp>

namespace dtrain::comm {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Joins the pieces of all ranks to the root of the tree over `shards` leaves of `size` floats each. Every rank gets
  // the same bytes, whatever the number of ranks and whoever held which leaf. All ranks call with equal shards and
  // size. One thread at a time. Throws PeerLost.
  virtual std::vector<float> reduce_tree(std::vector<TreePiece> pieces, int shards, std::int64_t size) = 0;
  virtual void barrier() = 0;
};

// One rank alone.
std::unique_ptr<Communicator> make_single();

// N ranks as threads of this process: element r is for the thread that plays rank r. They share a world that lives as
// long as the last of them; a rank destroyed before its peers are done makes them throw PeerLost.
std::vector<std::unique_ptr<Communicator>> make_local_world(int ranks);

}  // namespace dtrain::comm
