// Pieces of work over several connections; their number grows while that makes the whole faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace dtrain::net {

// Called with the number of bytes that came, from any thread.
using Came = std::function<void(std::uint64_t bytes)>;

// Calls work(piece, came) for every piece below `count`, in this order, with few connections first and more, up to
// `most`, while the rate of bytes grows with them. Throws what the first failing piece threw, after the
// other threads ended; pieces that had not begun are left out.
void for_each_piece(std::size_t count, std::size_t most,
                    const std::function<void(std::size_t piece, const Came& came)>& work);

}  // namespace dtrain::net
