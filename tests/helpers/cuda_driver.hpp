// A function of the driver that answers CUDA_ERROR_STUB_LIBRARY, unless cuda_driver.cpp has a better answer.
#pragma once

#define DTRAIN_STUB(name) \
  extern "C" __attribute__((weak)) int name() { return 34; }
