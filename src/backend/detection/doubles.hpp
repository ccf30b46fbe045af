// Non-maximum suppression: of two boxes of one kind that overlap much, the better one stays.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/nn/objects.hpp>

namespace dtrain::backend {

struct Candidate {
  float score = 0;
  std::int32_t label = 0;
  std::int64_t origin = 0;  // anchor or region; of equal scores the lower comes first, then the lower label
  nn::Box box = {};
};
bool is_better(const Candidate& a, const Candidate& b);
// The others go; those that stay are in no order.
void keep_best(std::vector<Candidate>& all, int most);

// `all` from the best to the worst. At most `most` stay.
std::vector<Candidate> without_doubles(const std::vector<Candidate>& all, float threshold, int most);

}  // namespace dtrain::backend
