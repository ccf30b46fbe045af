// Independent pieces of work at the same time.
#pragma once

#include <functional>
#include <vector>

namespace dtrain::cluster {

// Does all of them, a few at a time; then throws what the first of the failed ones threw.
void do_all(const std::vector<std::function<void()>>& pieces);

}  // namespace dtrain::cluster
