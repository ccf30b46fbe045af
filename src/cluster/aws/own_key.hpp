// The key with which the person logs in elsewhere.
#pragma once

#include <optional>
#include <string>

namespace dtrain::cluster {

// One line of ~/.ssh/id_*.pub, of a kind that EC2 takes; nullopt: there is none.
std::optional<std::string> own_public_key();

}  // namespace dtrain::cluster
