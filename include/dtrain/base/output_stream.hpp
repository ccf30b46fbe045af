// The two streams on which a program writes, as lines of it are passed on.
#pragma once

namespace dtrain {

enum class OutputStream { output, error };

inline const char* name_of(OutputStream stream) { return stream == OutputStream::output ? "stdout" : "stderr"; }

}  // namespace dtrain
