#pragma once

namespace dtrain::backend::reference {

// One function object made of several lambdas, for std::visit.
template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

}  // namespace dtrain::backend::reference
