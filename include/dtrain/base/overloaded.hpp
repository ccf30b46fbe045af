// One function object made of several lambdas, for std::visit.
#pragma once

namespace dtrain {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace dtrain
