// What a backend computes in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtrain::backend {

enum class DType { float32, bfloat16, float16 };
DType parse_dtype(std::string_view name);  // UsageError with the known names
const char* dtype_name(DType dtype);
std::vector<std::string> dtype_names();

}  // namespace dtrain::backend
