// The ssh agent of this user, as far as a person must know of it.
#pragma once

#include <optional>
#include <string>

namespace dtrain::doctor {

// How many keys it holds; nullopt: no agent answers at this socket within two seconds.
std::optional<int> keys_of_agent(const std::string& socket_path);

}  // namespace dtrain::doctor
