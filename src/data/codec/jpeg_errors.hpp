// libjpeg's errors as exceptions: libjpeg leaves by longjmp, so nothing with a destructor may live inside a guarded
// call.
#pragma once

#include <stdio.h>  // jpeglib.h takes FILE for granted

#include <jpeglib.h>
#include <csetjmp>

#include <dtrain/base/error.hpp>

namespace dtrain::data {

struct JpegErrors {
  jpeg_error_mgr manager{};
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX]{};

  JpegErrors();
  JpegErrors(const JpegErrors&) = delete;
  [[noreturn]] void fail() const;

  // Calls act(); where libjpeg gives up, DataError.
  template <typename Act>
  void guard(const Act& act) {
    if (setjmp(jump) != 0) fail();
    act();
  }
};

}  // namespace dtrain::data
