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

// Common in published sets, and no pixel is lost: stray bytes before a marker, a version of JFIF that libjpeg does not
// know, and an unknown transform in Adobe's marker, for which libjpeg takes the usual one.
bool is_harmless(int warning) {
  return warning == JWRN_EXTRANEOUS_DATA || warning == JWRN_JFIF_MAJOR || warning == JWRN_ADOBE_XFORM;
}

void judge_message(j_common_ptr codec, int level) {
  if (level < 0 && !is_harmless(codec->err->msg_code)) leave(codec);
}

}  // namespace

JpegErrors::JpegErrors() {
  jpeg_std_error(&manager);
  manager.error_exit = leave;
  manager.emit_message = judge_message;
}

void JpegErrors::fail() const { throw DataError(fmt::format("JPEG: {}", message)); }

}  // namespace dtrain::data
