// Names of settings in messages, as the options that set them.
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

// The folders below cli know settings and no command line: they write "setting 'num-examples'". This writes
// "--num-examples" for it.
std::string with_flags(std::string_view text);

}  // namespace dtrain
