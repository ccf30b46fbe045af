#include "jpeg_errors.hpp"

#include <fmt/format.h>

#include <jerror.h>

namespace dtrain::data {
namespace {

[[noreturn]] void leave(j_common_ptr codec) {
  auto* errors = reinterpret_cast<JpegErrors*>(codec->err);  // manager is its first member
  codec->err->format_message(codec, errors->message);
  std::longjmp(errors->jump, 1);
}

// Stray bytes before a marker are common in published sets and harm no pixel; every other warning means lost pixels.
void judge_message(j_common_ptr codec, int level) {
  if (level < 0 && codec->err->msg_code != JWRN_EXTRANEOUS_DATA) leave(codec);
}

}  // namespace

JpegErrors::JpegErrors() {
  jpeg_std_error(&manager);
  manager.error_exit = leave;
  manager.emit_message = judge_message;
}

void JpegErrors::fail() const { throw DataError(fmt::format("JPEG: {}", message)); }

}  // namespace dtrain::data
