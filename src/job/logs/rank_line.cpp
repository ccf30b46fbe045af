#include "rank_line.hpp"

#include <fmt/format.h>

#include <charconv>

namespace dtrain::job {
namespace {

constexpr std::string_view kBegin = "generation ", kBefore = ": rank ";

}  // namespace

std::string rank_line(std::uint64_t generation, int rank, int ranks) {
  return fmt::format("{}{}{}{} of {}", kBegin, generation, kBefore, rank, ranks);
}

int rank_in(std::string_view line) {
  if (!line.starts_with(kBegin)) return -1;
  const auto at = line.find(kBefore);
  if (at == line.npos) return -1;
  int rank = -1;
  std::from_chars(line.data() + at + kBefore.size(), line.data() + line.size(), rank);
  return rank;
}

}  // namespace dtrain::job
