// A float in JSON: the shortest decimal that is this float, so that 0.9f reads 0.9 and comes back bit for bit.
#pragma once

#include <fmt/format.h>

#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::nn {

inline std::string float_text(float value) { return fmt::format("{}", value); }

inline Json float_json(float value) { return Json(parse_number(float_text(value)).value_or(0.0)); }

}  // namespace dtrain::nn
