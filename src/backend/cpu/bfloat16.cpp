#include "bfloat16.hpp"

#include <string_view>

#include "onednn.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace dtrain::backend::cpu {

bool widens_bfloat16(const CpuModel& cpu) {
  if (cpu.has_amx_bf16) return false;
  if (!cpu.has_avx512_bf16) return true;
  return cpu.intel && cpu.family == 6 && cpu.model >= 143;
}

CpuModel this_cpu() {
  CpuModel cpu;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  __get_cpuid(0, &a, &b, &c, &d);
  cpu.intel = b == signature_INTEL_ebx;
  __get_cpuid(1, &a, &b, &c, &d);
  cpu.family = static_cast<int>(a >> 8 & 0xf);
  cpu.model = static_cast<int>((a >> 4 & 0xf) | (a >> 12 & 0xf0));
  cpu.has_avx2_fma = (c & bit_FMA) != 0 && uses_instructions(dnnl::cpu_isa::avx2);
#endif
  cpu.has_avx512 = uses_instructions(dnnl::cpu_isa::avx512_core);
  cpu.has_avx512_bf16 = uses_instructions(dnnl::cpu_isa::avx512_core_bf16);
  cpu.has_amx_bf16 = uses_instructions(dnnl::cpu_isa::avx512_core_amx);
  return cpu;
}

}  // namespace dtrain::backend::cpu
