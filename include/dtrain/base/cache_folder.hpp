// Where a person's programs keep what they could make again.
#pragma once

#include <dtrain/base/files.hpp>

namespace dtrain {

// $XDG_CACHE_HOME/dtrain, else ~/.cache/dtrain; it may not exist yet. Without both a folder of this user in $TMPDIR or
// /tmp, which is made; UsageError: others could write there.
Path user_cache_folder();

}  // namespace dtrain
