// Whether convolutions and dense layers on bfloat16 tensors use the CPU's bfloat16 instructions or float32 copies of a
// chunk at a time. A product of two bfloat16 numbers is exact in float32 and both ways add in float32, so they differ
// only in the order of additions; float32 copies are the faster way where the instructions are missing or slow.
#pragma once

namespace dtrain::backend::cpu {

struct CpuModel {
  bool intel = false;
  int family = 0, model = 0;
  bool has_avx2_fma = false;
  bool has_avx512 = false;
  bool has_avx512_bf16 = false;
  bool has_amx_bf16 = false;  // as this process may use it: a virtual machine can hide it

  bool has_fused_kernels() const { return has_avx512 || has_avx2_fma; }
};

// Pure. Intel's chips from Sapphire Rapids on (family 6, model 143) leave bfloat16 to AMX: their AVX-512 instructions
// for it run at half the rate of float32 ones (measured on model 207: 0.5). AMD's Zen 4 and 5 and Cooper Lake run them
// faster.
bool widens_bfloat16(const CpuModel& cpu);

// What a description of the backend says of this, beside the instructions: chips that have the same ones and do not
// compute the same bits tell themselves apart by it.
const char* bfloat16_description(const CpuModel& cpu);

CpuModel this_cpu();

}  // namespace dtrain::backend::cpu
