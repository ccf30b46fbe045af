// Where a person's programs keep what they could make again.
#pragma once

#include <dtrain/base/files.hpp>

namespace dtrain {

// $XDG_CACHE_HOME/dtrain, else ~/.cache/dtrain. It may not exist yet.
Path user_cache_folder();

}  // namespace dtrain
