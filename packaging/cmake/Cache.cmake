# Compiles through ccache where it is installed and no other launcher was chosen (-DCMAKE_CXX_COMPILER_LAUNCHER= turns it off).
# A precompiled header carries the time of its build and macros that a source need not repeat; ccache takes part only when it
# is allowed to overlook both.
find_program(DTRAIN_CCACHE ccache)
if(DTRAIN_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${DTRAIN_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
