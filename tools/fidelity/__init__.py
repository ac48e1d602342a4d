"""What is known of how the emulator plays each operation of AWS that Shoal asks for."""
