// The line by which logs of workers say which rank their worker has: "generation 3: rank 1 of 4, ...".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain::job {

std::string rank_line(std::uint64_t generation, int rank, int ranks);
// -1: it is another line.
int rank_in(std::string_view line);

}  // namespace dtrain::job
